#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/extension/data_loader/file_data_loader.h>
#include <executorch/extension/flat_tensor/flat_tensor_data_map.h>
#include <executorch/extension/flat_tensor/serialize/serialize.h>
#include <executorch/extension/named_data_map/merged_data_map.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/platform/runtime.h>
#include <executorch/schema/extended_header.h>
#include <executorch/schema/flat_tensor_generated.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

// save_ptd is marked as experimental by a deprecation warning.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace executorch::extension {
namespace {

namespace fb = flat_tensor_flatbuffer;
using aten::ScalarType;
using merged_data_map::MergedDataMap;
using runtime::Error;
using runtime::NamedDataMap;

std::string saved(const std::map<std::string, TensorPtr>& tensors, size_t alignment = 128) {
  std::map<std::string, aten::Tensor> handles;
  for (const auto& [name, tensor] : tensors) handles.emplace(name, *tensor);
  std::ostringstream out;
  EXPECT_EQ(flat_tensor::save_ptd(out, handles, alignment), Error::Ok);
  return out.str();
}

std::string two_tensors() {
  return saved({{"a.weight", make_tensor_ptr({3, 4}, std::vector<float>(12, 1.5f))},
                {"b.bias", make_tensor_ptr({1, 2, 3})}});
}

/// A .ptd file that is sound except for what the parameters say.
struct Corrupt {
  std::string key = "k";
  uint32_t segment_index = 0;
  std::vector<int32_t> sizes = {2};
  std::vector<uint8_t> dim_order = {0};
  int scalar_type = static_cast<int>(ScalarType::Float);
  uint64_t segment_offset = 0;
  uint64_t segment_size = 8;
  uint64_t data_size = 8;
  int copies = 1;
  uint32_t version = 0;
  bool has_segments = true;
  bool has_names = true;

  std::string bytes() const {
    flatbuffers::FlatBufferBuilder b;
    std::vector<flatbuffers::Offset<fb::NamedData>> names;
    for (int i = 0; i < copies; ++i) {
      const auto layout =
          fb::CreateTensorLayout(b, static_cast<executorch_flatbuffer::ScalarType>(scalar_type),
                                 b.CreateVector(sizes), b.CreateVector(dim_order));
      names.push_back(fb::CreateNamedData(b, b.CreateString(key), segment_index, layout));
    }
    const auto named = b.CreateVector(names);
    const auto segments =
        b.CreateVector(std::vector{fb::CreateDataSegment(b, segment_offset, segment_size)});
    fb::FlatTensorBuilder root(b);
    root.add_version(version);
    if (has_segments) root.add_segments(segments);
    if (has_names) root.add_named_data(named);
    fb::FinishFlatTensorBuffer(b, root.Finish());
    return with_header(b);
  }

  std::string with_header(flatbuffers::FlatBufferBuilder& b) const {
    const size_t spliced = schema::kFlatTensorHeaderLength;
    const uint64_t base = (spliced + b.GetSize() + 127) / 128 * 128;
    const schema::FlatTensorHeader header{spliced, b.GetSize(), base, data_size};
    std::string file(base + data_size, '\0');
    auto* const out = reinterpret_cast<uint8_t*>(file.data());
    schema::write_head(b.GetBufferPointer(), spliced, header, out);
    std::memcpy(out + 8 + spliced, b.GetBufferPointer() + 8, b.GetSize() - 8);
    return file;
  }
};

Error load_error(const std::string& bytes) {
  BufferDataLoader loader(bytes.data(), bytes.size());
  return FlatTensorDataMap::load(&loader).error();
}

Error error_with(const std::function<void(Corrupt&)>& change) {
  Corrupt file;
  change(file);
  return load_error(file.bytes());
}

class FlatTensorTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { runtime::runtime_init(); }
};

TEST_F(FlatTensorTest, ReadsWhatItWrites) {
  const std::string bytes = two_tensors();
  BufferDataLoader loader(bytes.data(), bytes.size());
  const auto map = FlatTensorDataMap::load(&loader);
  ASSERT_TRUE(map.ok());
  EXPECT_EQ(map->get_num_keys().get(), 2u);
  EXPECT_STREQ(map->get_key(0).get(), "a.weight");
  EXPECT_STREQ(map->get_key(1).get(), "b.bias");
  const auto layout = map->get_tensor_layout("a.weight");
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->scalar_type(), ScalarType::Float);
  EXPECT_EQ(layout->sizes().size(), 2u);
  EXPECT_EQ(layout->sizes()[1], 4);
  EXPECT_EQ(layout->dim_order()[1], 1);
  EXPECT_EQ(layout->nbytes(), 48u);
  const auto data = map->get_data("b.bias");
  ASSERT_TRUE(data.ok());
  ASSERT_EQ(data->size(), 12u);
  EXPECT_EQ(static_cast<const int32_t*>(data->data())[2], 3);
  float first[2];
  EXPECT_EQ(map->load_data_into("a.weight", first, sizeof(first)), Error::Ok);
  EXPECT_EQ(first[1], 1.5f);
}

TEST_F(FlatTensorTest, WritesTheDocumentedContainer) {
  const std::string bytes = two_tensors();
  const auto header = FlatTensorHeader::Parse(bytes.data(), bytes.size());
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header->flatbuffer_offset, 48u);
  EXPECT_EQ(header->segment_base_offset % 128, 0u);
  EXPECT_EQ(header->segment_data_size, 128u + 12u);
  EXPECT_EQ(bytes.size(), header->segment_base_offset + header->segment_data_size);
  EXPECT_EQ(bytes.substr(4, 8), "FT01FH01");
}

TEST_F(FlatTensorTest, WritesFilesThroughARename) {
  const std::string path = ::testing::TempDir() + "flat_tensor_test.ptd";
  const auto tensor = make_tensor_ptr({1.0f});
  ASSERT_EQ(flat_tensor::save_ptd(path, {{"x", *tensor}}, 16), Error::Ok);
  auto loader = FileDataLoader::from(path.c_str());
  ASSERT_TRUE(loader.ok());
  EXPECT_TRUE(FlatTensorDataMap::load(&loader.get()).ok());
  std::remove(path.c_str());
  EXPECT_EQ(flat_tensor::save_ptd("/no/such/folder/x.ptd", {{"x", *tensor}}, 16),
            Error::AccessFailed);
}

TEST_F(FlatTensorTest, WriterRejectsBadArguments) {
  std::ostringstream out;
  const auto tensor = make_tensor_ptr({1.0f});
  const auto empty_handed = make_tensor_ptr({2}, nullptr);
  EXPECT_EQ(flat_tensor::save_ptd(out, {{"x", *tensor}}, 0), Error::InvalidArgument);
  EXPECT_EQ(flat_tensor::save_ptd(out, {{"x", *tensor}}, 24), Error::InvalidArgument);
  EXPECT_EQ(flat_tensor::save_ptd(out, {{"x", *tensor}}, size_t{1} << 31), Error::InvalidArgument);
  EXPECT_EQ(flat_tensor::save_ptd(out, {{"x", *empty_handed}}, 16), Error::InvalidArgument);
  EXPECT_EQ(flat_tensor::save_ptd(out, {{"", *tensor}}, 16), Error::InvalidArgument);
  EXPECT_EQ(flat_tensor::save_ptd(out, {{"x", aten::Tensor(nullptr)}}, 16), Error::InvalidArgument);
  const std::string zero_byte("a\0b", 3);
  EXPECT_EQ(flat_tensor::save_ptd(out, {{zero_byte, *tensor}}, 16), Error::InvalidArgument);
  const std::string path = ::testing::TempDir() + "flat_tensor_test_refused.ptd";
  EXPECT_EQ(flat_tensor::save_ptd(path, {{zero_byte, *tensor}}, 16), Error::InvalidArgument);
  EXPECT_FALSE(FileDataLoader::from(path.c_str()).ok());
  aten::SizesType sizes[] = {1, 2};
  uint8_t twice[] = {1, 1};
  float data[2] = {};
  aten::TensorImpl unordered(ScalarType::Float, 2, sizes, data, twice);
  EXPECT_EQ(flat_tensor::save_ptd(out, {{"x", aten::Tensor(&unordered)}}, 16),
            Error::InvalidArgument);
  EXPECT_EQ(out.str(), "");
}

TEST_F(FlatTensorTest, TensorsWithoutADimOrderAreSavedAsContiguous) {
  aten::SizesType sizes[] = {2, 2};
  float data[] = {1, 2, 3, 4};
  aten::TensorImpl impl(ScalarType::Float, 2, sizes, data);
  std::ostringstream out;
  ASSERT_EQ(flat_tensor::save_ptd(out, {{"x", aten::Tensor(&impl)}}, 16), Error::Ok);
  EXPECT_EQ(out.str(), saved({{"x", make_tensor_ptr({2, 2}, std::vector<float>{1, 2, 3, 4})}}, 16));
}

TEST_F(FlatTensorTest, HoldsScalarsAndEmptyTensorsAndNothing) {
  const std::string bytes = saved({{"s", make_tensor_ptr(2.5f)}, {"e", empty({0, 3})}});
  BufferDataLoader loader(bytes.data(), bytes.size());
  const auto map = FlatTensorDataMap::load(&loader);
  ASSERT_TRUE(map.ok());
  EXPECT_EQ(map->get_tensor_layout("s")->sizes().size(), 0u);
  EXPECT_EQ(map->get_data("e")->size(), 0u);
  EXPECT_EQ(load_error(saved({})), Error::Ok);
}

TEST_F(FlatTensorTest, AnswersUnknownKeysWithNotFound) {
  const std::string bytes = two_tensors();
  BufferDataLoader loader(bytes.data(), bytes.size());
  const auto map = FlatTensorDataMap::load(&loader);
  char byte;
  EXPECT_EQ(map->get_tensor_layout("c").error(), Error::NotFound);
  EXPECT_EQ(map->get_data("c").error(), Error::NotFound);
  EXPECT_EQ(map->load_data_into("c", &byte, 1), Error::NotFound);
  EXPECT_EQ(map->load_data_into("b.bias", &byte, 13), Error::InvalidArgument);
  EXPECT_EQ(map->get_key(2).error(), Error::InvalidArgument);
}

TEST_F(FlatTensorTest, TheCorruptionsStartFromASoundFile) {
  EXPECT_EQ(error_with([](Corrupt&) {}), Error::Ok);
}

TEST_F(FlatTensorTest, RejectsDamagedContent) {
  const std::pair<const char*, std::function<void(Corrupt&)>> kDamages[] = {
      {"later version", [](Corrupt& c) { c.version = 1; }},
      {"empty key", [](Corrupt& c) { c.key = ""; }},
      {"zero byte in key", [](Corrupt& c) { c.key = std::string("a\0b", 3); }},
      {"key twice", [](Corrupt& c) { c.copies = 2; }},
      {"segment index", [](Corrupt& c) { c.segment_index = 1; }},
      {"segment end", [](Corrupt& c) { c.segment_size = 9; }},
      {"segment offset", [](Corrupt& c) { c.segment_offset = 9; }},
      {"segment sum overflows", [](Corrupt& c) { c.segment_offset = UINT64_MAX - 3; }},
      {"layout larger than segment", [](Corrupt& c) { c.sizes = {3}; }},
      {"negative size", [](Corrupt& c) { c.sizes = {-2}; }},
      {"size overflow",
       [](Corrupt& c) {
         c.sizes = std::vector<int32_t>(4, INT32_MAX);
         c.dim_order = {0, 1, 2, 3};
       }},
      {"no permutation", [](Corrupt& c) { c.dim_order = {1}; }},
      {"rank of dim order",
       [](Corrupt& c) {
         c.dim_order = {0, 1};
       }},
      {"scalar type", [](Corrupt& c) { c.scalar_type = 99; }},
      {"no segments", [](Corrupt& c) { c.has_segments = false; }},
      {"no names", [](Corrupt& c) { c.has_names = false; }},
  };
  for (const auto& [name, damage] : kDamages) {
    EXPECT_EQ(error_with(damage), Error::InvalidExternalData) << name;
  }
}

TEST_F(FlatTensorTest, RejectsDamagedHeaders) {
  const std::string good = two_tensors();
  EXPECT_EQ(load_error(""), Error::InvalidExternalData);
  EXPECT_EQ(load_error(good.substr(0, 63)), Error::InvalidExternalData);
  const auto damaged = [&](size_t at, char value) {
    std::string bytes = good;
    bytes[at] = value;
    return load_error(bytes);
  };
  EXPECT_EQ(damaged(8, 'X'), Error::InvalidExternalData);    // magic
  EXPECT_EQ(damaged(4, 'X'), Error::InvalidExternalData);    // identifier
  EXPECT_EQ(damaged(12, 39), Error::InvalidExternalData);    // header length
  EXPECT_EQ(damaged(23, 0x7f), Error::InvalidExternalData);  // flatbuffer offset
  EXPECT_EQ(damaged(31, 0x7f), Error::InvalidExternalData);  // flatbuffer size
  EXPECT_EQ(damaged(33, 0), Error::InvalidExternalData);     // segments over the flatbuffer
  EXPECT_EQ(damaged(39, 0x7f), Error::InvalidExternalData);  // segment base
  EXPECT_EQ(damaged(47, 0x7f), Error::InvalidExternalData);  // segment size
  EXPECT_EQ(damaged(0, 0x7f), Error::InvalidExternalData);   // root offset
}

TEST_F(FlatTensorTest, HeaderParserTellsAbsentFromShortFromBad) {
  std::string bytes = two_tensors();
  EXPECT_EQ(FlatTensorHeader::Parse(bytes.data(), 63).error(), Error::InvalidArgument);
  bytes[12] = 39;
  EXPECT_EQ(FlatTensorHeader::Parse(bytes.data(), 64).error(), Error::InvalidExternalData);
  bytes[8] = 'X';
  EXPECT_EQ(FlatTensorHeader::Parse(bytes.data(), 64).error(), Error::NotFound);
}

TEST_F(FlatTensorTest, RejectsEveryTruncation) {
  const std::string good = two_tensors();
  for (size_t size = 0; size < good.size(); ++size) {
    ASSERT_NE(load_error(good.substr(0, size)), Error::Ok) << size;
  }
}

TEST_F(FlatTensorTest, SurvivesEveryDamagedByte) {
  const std::string good = two_tensors();
  for (size_t at = 0; at < 512 && at < good.size(); ++at) {
    for (const int bit : {0, 3, 7}) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
      BufferDataLoader loader(bytes.data(), bytes.size());
      const auto map = FlatTensorDataMap::load(&loader);
      for (uint32_t i = 0; map.ok() && i < map->get_num_keys().get(); ++i) {
        EXPECT_TRUE(map->get_data(map->get_key(i).get()).ok());
      }
    }
  }
}

class MergedDataMapTest : public FlatTensorTest {
 protected:
  runtime::Result<MergedDataMap> merge(std::vector<const NamedDataMap*> maps) {
    return MergedDataMap::load({maps.data(), maps.size()});
  }

  const std::string first_bytes_ = saved({{"a", make_tensor_ptr({1.0f})}});
  const std::string second_bytes_ = saved({{"b", make_tensor_ptr({2, 3})}});
  BufferDataLoader first_loader_{first_bytes_.data(), first_bytes_.size()};
  BufferDataLoader second_loader_{second_bytes_.data(), second_bytes_.size()};
  runtime::Result<FlatTensorDataMap> first_ = FlatTensorDataMap::load(&first_loader_);
  runtime::Result<FlatTensorDataMap> second_ = FlatTensorDataMap::load(&second_loader_);
};

TEST_F(MergedDataMapTest, FindsTheKeysOfAllMaps) {
  const auto merged = merge({&first_.get(), &second_.get()});
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(merged->get_num_keys().get(), 2u);
  EXPECT_STREQ(merged->get_key(1).get(), "b");
  EXPECT_EQ(merged->get_tensor_layout("a")->scalar_type(), ScalarType::Float);
  EXPECT_EQ(merged->get_data("b")->size(), 8u);
  int32_t numbers[2];
  EXPECT_EQ(merged->load_data_into("b", numbers, sizeof(numbers)), Error::Ok);
  EXPECT_EQ(numbers[1], 3);
  EXPECT_EQ(merged->get_data("c").error(), Error::NotFound);
  EXPECT_EQ(merged->get_key(2).error(), Error::InvalidArgument);
}

TEST_F(MergedDataMapTest, LeavesNullMapsOut) {
  const auto merged = merge({nullptr, &second_.get(), nullptr});
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(merged->get_num_keys().get(), 1u);
  EXPECT_EQ(merged->get_data("b")->size(), 8u);
}

TEST_F(MergedDataMapTest, RejectsDuplicateKeysAndNoMaps) {
  EXPECT_EQ(merge({&first_.get(), &first_.get()}).error(), Error::InvalidArgument);
  EXPECT_EQ(merge({}).error(), Error::InvalidArgument);
  EXPECT_EQ(merge({nullptr, nullptr}).error(), Error::InvalidArgument);
}

}  // namespace
}  // namespace executorch::extension
