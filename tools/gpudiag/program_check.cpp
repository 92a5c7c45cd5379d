// SPDX-License-Identifier: Apache-2.0
#include "program_check.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string_view>
#include <vector>

namespace gpudiag::tool {

namespace fs = std::filesystem;

namespace {

// A file's bytes, mapped. Empty where it cannot be.
class MappedFile {
 public:
  explicit MappedFile(const fs::path& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    struct stat status {};
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
      size_ = static_cast<std::size_t>(status.st_size);
      at_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    close(fd);
  }
  ~MappedFile() {
    if (at_ != MAP_FAILED) munmap(at_, size_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const {
    return at_ == MAP_FAILED ? std::string_view{} : std::string_view{static_cast<const char*>(at_), size_};
  }

 private:
  void* at_ = MAP_FAILED;
  std::size_t size_ = 0;
};

// The sections of a 64-bit ELF file, read with every offset checked: the file may be anything.
class ElfFile {
 public:
  explicit ElfFile(std::string_view bytes) : bytes_{bytes} {
    Elf64_Ehdr header{};
    if (!copy(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64)
      return;
    for (std::size_t i = 0; i < header.e_shnum; ++i) {
      Elf64_Shdr section{};
      if (!copy(header.e_shoff + i * header.e_shentsize, section)) return;
      sections_.push_back(section);
    }
    if (header.e_shstrndx < sections_.size()) names_ = contents(sections_[header.e_shstrndx]);
  }

  bool has_section(std::string_view name) const {
    for (const Elf64_Shdr& section : sections_)
      if (text(names_, section.sh_name) == name) return true;
    return false;
  }

  /// Whether it asks the loader for a library whose name begins so.
  bool needs(std::string_view library) const {
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type != SHT_DYNAMIC) continue;
      const std::string_view strings = linked_strings(section);
      for (std::size_t at = 0; at + sizeof(Elf64_Dyn) <= section.sh_size; at += sizeof(Elf64_Dyn)) {
        Elf64_Dyn entry{};
        if (!copy(section.sh_offset + at, entry) || entry.d_tag == DT_NULL) break;
        if (entry.d_tag == DT_NEEDED &&
            text(strings, entry.d_un.d_val).substr(0, library.size()) == library)
          return true;
      }
    }
    return false;
  }

  bool defines(std::string_view symbol) const {
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type != SHT_SYMTAB && section.sh_type != SHT_DYNSYM) continue;
      const std::string_view strings = linked_strings(section);
      for (std::size_t at = 0; at + sizeof(Elf64_Sym) <= section.sh_size; at += sizeof(Elf64_Sym)) {
        Elf64_Sym entry{};
        if (!copy(section.sh_offset + at, entry)) break;
        if (entry.st_shndx != SHN_UNDEF && text(strings, entry.st_name) == symbol) return true;
      }
    }
    return false;
  }

 private:
  template <typename T>
  bool copy(std::size_t offset, T& to) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return false;
    std::memcpy(&to, bytes_.data() + offset, sizeof(T));
    return true;
  }

  std::string_view contents(const Elf64_Shdr& section) const {
    if (section.sh_type == SHT_NOBITS || section.sh_offset > bytes_.size()) return {};
    return bytes_.substr(section.sh_offset, section.sh_size);
  }

  std::string_view linked_strings(const Elf64_Shdr& section) const {
    return section.sh_link < sections_.size() ? contents(sections_[section.sh_link]) : std::string_view{};
  }

  static std::string_view text(std::string_view strings, std::size_t offset) {
    if (offset >= strings.size()) return {};
    return strings.substr(offset, strings.find('\0', offset) - offset);
  }

  std::string_view bytes_;
  std::vector<Elf64_Shdr> sections_;
  std::string_view names_;
};

}  // namespace

fs::path find_program(const std::string& command, const std::string& path_variable) {
  if (command.find('/') != std::string::npos) return command;
  std::size_t at = 0;
  while (at <= path_variable.size()) {
    const std::size_t end = std::min(path_variable.find(':', at), path_variable.size());
    const std::string folder = path_variable.substr(at, end - at);
    const fs::path candidate = fs::path{folder.empty() ? "." : folder} / command;
    if (access(candidate.c_str(), X_OK) == 0 && fs::is_regular_file(candidate)) return candidate;
    at = end + 1;
  }
  return {};
}

bool has_static_cudart(const fs::path& program) {
  const MappedFile file{program};
  const ElfFile elf{file.bytes()};
  if (elf.needs("libcudart.so")) return false;
  // nvcc puts device code into .nv_fatbin, which stripping keeps; without a kernel of its own a
  // program is known by the runtime's functions it defines.
  return elf.has_section(".nv_fatbin") || elf.defines("cudaLaunchKernel") || elf.defines("cudaMalloc");
}

}  // namespace gpudiag::tool
