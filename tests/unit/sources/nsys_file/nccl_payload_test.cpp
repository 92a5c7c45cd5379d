// SPDX-License-Identifier: Apache-2.0
#include "sources/nsys_file/nccl_payload.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "export_file.hpp"

namespace gpudiag::nsys_file {
namespace {

TEST(NcclPayload, JsonGivesNumbersAndTexts) {
  const NcclPayload payload = payload_of_json(
      R"({"NCCL communicator ID": 13726715776150237, "Message size [bytes]":4096, "Reduction operation":"Sum", "Peer rank": 3})");
  EXPECT_EQ(payload.communicator, 13726715776150237u);
  EXPECT_EQ(payload.bytes, 4096u);
  EXPECT_EQ(payload.peer, 3u);
  EXPECT_EQ(payload.reduction, "Sum");
  EXPECT_FALSE(payload.ranks);
  EXPECT_FALSE(payload.empty());
}

TEST(NcclPayload, AnIdMayBeHexadecimalInQuotes) {
  EXPECT_EQ(payload_of_json(R"({"NCCL communicator ID":"0xff"})").communicator, 255u);
}

TEST(NcclPayload, TextThatIsNoObjectSaysNothing) {
  for (const char* text : {"", "{", "{\"", "{\"NCCL communicator ID\"", "[1,2]", "{1:2}", "{\"a\":{\"b\":1}}",
                           "{\"NCCL communicator ID\":-1}", "{\"NCCL communicator ID\":99999999999999999999}",
                           "{\"x\\"})
    EXPECT_TRUE(payload_of_json(text).empty()) << text;
}

class Binary : public ::testing::Test {
 protected:
  Binary() : file_{}, database_{open()}, reading_{quality_, unknown_, 1000, {}}, schemas_{database_, reading_} {}

  static std::string payload(std::uint32_t domain, std::uint32_t schema, const std::string& data) {
    std::string bytes(32, '\0');
    std::memcpy(bytes.data(), &domain, 4);
    std::memcpy(bytes.data() + 8, &schema, 4);
    return bytes + data;
  }

  Database open() {
    file_.sql("CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId, schemaId, idx, type, name, offset);"
              "INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES (1, 7, 0, 18, 'NCCL communicator ID', NULL),"
              "(1, 7, 1, 22, 'Message size [bytes]', 8), (1, 7, 2, 5, 'Peer rank', 16)");
    return std::move(*Database::open(file_.path()));
  }

  gpudiag::testing::ExportFile file_;
  Quality quality_;
  std::vector<std::string> unknown_;
  Database database_;
  Reading reading_;
  PayloadSchemas schemas_;
};

TEST_F(Binary, IsLaidOutAsItsSchemaSays) {
  const std::string data{"\x11\0\0\0\0\0\0\x01" "\0\x10\0\0\0\0\0\0" "\x03\0\0\0", 20};
  const NcclPayload decoded = schemas_.decode(payload(1, 7, data));
  EXPECT_EQ(decoded.communicator, 0x0100000000000011u);
  EXPECT_EQ(decoded.bytes, 4096u);
  EXPECT_EQ(decoded.peer, 3u);
}

TEST_F(Binary, OfAnUnknownSchemaOrCutSaysOnlyWhatIsThere) {
  EXPECT_TRUE(schemas_.decode("").empty());
  EXPECT_TRUE(schemas_.decode(payload(1, 8, std::string(20, 'x'))).empty());
  const NcclPayload cut = schemas_.decode(payload(1, 7, std::string(12, '\1')));
  EXPECT_TRUE(cut.communicator);
  EXPECT_FALSE(cut.bytes);
}

}  // namespace
}  // namespace gpudiag::nsys_file
