/// Payloads made from nothing: a few nodes whose kinds, types and shapes go together.
#include <executorch/backends/xnnpack/runtime/payload_fields.h>
#include <executorch/backends/xnnpack/runtime/payload_values.h>
#include <executorch/cpu/size.h>

#include <algorithm>
#include <array>

namespace executorch::backends::xnnpack::testing {
namespace {

class Maker : PayloadValues {
 public:
  explicit Maker(Random& random) : PayloadValues(random) {}

  Bytes make() {
    Result last = start();
    for (uint64_t n = one_in(2, random_) ? 1 : 1 + below(4, random_); n > 0; --n) last = add(last);
    give_back(last);
    graph_.num_externs = slots_;
    return pack_payload(graph_, data_.data(), data_.size());
  }

 private:
  Result start() { return input(any_of(kMovable, random_), shape(chance(2) ? 4 : random_() % 7)); }

  /// The result, as it is or moved to an output.
  void give_back(const Result& last) {
    auto& value = graph_.xvalues[last.id]->xvalue_union;
    auto* const quantized = value.AsXNNQuantizedTensorValue();
    auto* const tensor =
        quantized != nullptr ? quantized->tensor_value.get() : value.AsXNNTensorValue();
    if (tensor->flags != 0) return;
    tensor->flags = 2;
    tensor->external_id = slots_++;
  }

  Result add(const Result& x) {
    switch (below(x.dims.size() == 4 ? 19 : 10, random_)) {
      case 0:
        return add_unary(x);
      case 1:
        return add_binary(x);
      case 2:
        return add_slice(x);
      case 3:
        return add_pad(x);
      case 4:
        return add_transpose(x);
      case 5:
        return add_reshape(x);
      case 6:
        return add_concatenate(x);
      case 7:
      case 8:
        return add_fully_connected(x);
      case 9:
        return add_matmul(x);
      case 10:
        return unary(any_of(global_poolings_, random_), x, x.type, {x.dims[0], 1, 1, x.dims[3]});
      case 11:
      case 12:
        return add_pooling(x);
      case 13:
        return add_resize(x);
      default:
        return add_convolution(x);
    }
  }

  Result add_unary(const Result& x) {
    const Type type = chance(3) ? any_of(kMovable, random_) : x.type;
    if (chance(8)) {
      fb::XNNLeakyReLUT table;
      table.negative_slope = 0.5f;
      return finish(any_of(slopes_, random_), std::move(table), x, x.dims, type);
    }
    if (chance(8)) {
      fb::XNNELUT table;
      table.alpha = 0.5f;
      return finish(any_of(alphas_, random_), std::move(table), x, x.dims, type);
    }
    return unary(chance(8) ? Kind::XNNConvert : any_of(unary_, random_), x, type, x.dims);
  }

  Result add_binary(const Result& x) {
    Dims dims = x.dims;
    for (uint32_t& dim : dims) dim = chance(3) ? 1 : dim;
    if (chance(4) && !dims.empty()) dims.erase(dims.begin());
    if (chance(16) && dims.size() < 6) dims.insert(dims.begin(), 1 + below(3, random_));
    const Type type = chance(4) ? any_of(kMovable, random_) : x.type;
    const bool is_constant = chance(2);
    const uint32_t other = is_constant ? constant(type, dims) : input(type, dims).id;
    fb::_XNNNode2x1T table;
    const bool transposed = chance(4);
    table.input1_id = transposed ? other : x.id;
    table.input2_id = transposed ? x.id : chance(8) ? x.id : other;
    const Dims out = dims.size() > x.dims.size() ? dims : x.dims;
    table.output_id = inner(x.type, out);
    const uint32_t id = table.output_id;
    add_node(any_of(binary_, random_), std::move(table));
    return {id, x.type, out};
  }

  Result add_slice(const Result& x) {
    fb::XNNStaticSliceT table;
    table.num_dims = static_cast<uint32_t>(x.dims.size());
    Dims out;
    for (const uint32_t dim : x.dims) {
      const uint32_t offset = chance(2) ? 0 : below(uint64_t{dim} + 1, random_);
      const uint32_t size = chance(2) ? 0 : below(uint64_t{dim} - offset + 1, random_);
      table.offsets.push_back(chance(32) ? Linear(random_)() : offset);
      table.sizes.push_back(chance(32) ? Linear(random_)() : size);
      out.push_back(size == 0 ? dim - offset : size);
    }
    return finish(Kind::XNNStaticSlice, std::move(table), x, out);
  }

  Result add_pad(const Result& x) {
    fb::XNNStaticConstantPadT table;
    table.padding_value = 1.5f;
    uint64_t room = (1 << 18) / std::max<uint64_t>(numel(x.dims), 1);
    Dims out;
    for (const uint32_t dim : x.dims) {
      const auto amount = [&] {
        const uint32_t n = chance(6) ? Linear(random_)() : below(3, random_);
        return n > room && !chance(32) ? 0 : n;
      };
      table.pre_paddings.push_back(amount());
      table.post_paddings.push_back(amount());
      out.push_back(dim + table.pre_paddings.back() + table.post_paddings.back());
      room /= std::max<uint64_t>(out.back() / std::max<uint32_t>(dim, 1), 1);
    }
    return finish(Kind::XNNStaticConstantPad, std::move(table), x, out);
  }

  Result add_transpose(const Result& x) {
    fb::XNNStaticTransposeT table;
    table.num_dims = static_cast<uint32_t>(x.dims.size());
    for (uint32_t i = 0; i < table.num_dims; ++i) table.perm.push_back(i);
    std::shuffle(table.perm.begin(), table.perm.end(), random_);
    if (table.num_dims == 4 && chance(2)) {
      table.perm = chance(2) ? Dims{0, 2, 3, 1} : Dims{0, 3, 1, 2};
    }
    Dims out;
    for (const uint32_t from : table.perm) out.push_back(x.dims[from]);
    return finish(Kind::XNNStaticTranspose, std::move(table), x, out);
  }

  Result add_reshape(const Result& x) {
    fb::XNNStaticReshapeT table;
    uint64_t rest = numel(x.dims);
    Dims out;
    for (const uint32_t factor : {2u, 3u, 4u, 5u, 1u}) {
      if (out.size() < 5 && chance(2) && rest % factor == 0) {
        out.push_back(factor);
        rest /= factor;
      }
    }
    if (out.size() < 6) out.push_back(static_cast<uint32_t>(rest));
    table.new_shape = out;
    if (chance(2)) any_of(table.new_shape, random_) = 0;
    if (chance(16)) any_of(table.new_shape, random_) = Linear(random_)();
    table.num_dims = static_cast<uint32_t>(out.size());
    return finish(Kind::XNNStaticReshape, std::move(table), x, out);
  }

  Result add_concatenate(const Result& x) {
    if (x.dims.empty()) return x;
    fb::_XNNCatT table;
    table.axis = below(x.dims.size(), random_);
    Dims out = x.dims;
    const size_t n = 2 + below(4, random_);
    std::array<uint32_t, 5> ids;
    ids.fill(kNone);
    ids[0] = x.id;
    for (size_t i = 1; i < n; ++i) {
      Dims dims = x.dims;
      if (chance(2)) dims[table.axis] = chance(4) ? Linear(random_)() % 65600 : below(5, random_);
      const bool same = numel(dims) > (1 << 18) || chance(3);
      ids[i] = same ? x.id : input(x.type, dims).id;
      out[table.axis] += same ? x.dims[table.axis] : dims[table.axis];
    }
    table.input1_id = ids[0];
    table.input2_id = ids[1];
    table.input3_id = ids[2];
    table.input4_id = ids[3];
    table.input5_id = ids[4];
    if (chance(4)) table.axis -= static_cast<uint32_t>(x.dims.size());
    table.output_id = inner(x.type, out);
    const uint32_t id = table.output_id;
    add_node(concatenations_[n - 2], std::move(table));
    return {id, x.type, out};
  }

  Result add_fully_connected(const Result& x) {
    if (x.dims.empty() || x.dims.back() > 70'000) return x;
    const uint32_t k = x.dims.back(), n = chance(8) ? 0 : 1 + below(80, random_);
    fb::XNNFullyConnectedT table;
    table.input1_id = x.id;
    table.bias_id = kNone;
    const bool integers = x.type == Type::qint8 || x.type == Type::quint8;
    const bool has_bias = chance(2);
    Type type = x.type;
    if (integers) {
      table.filter_id = constant(chance(4) ? Type::qint8 : Type::qcint8, {n, k});
      if (has_bias) table.bias_id = constant(chance(2) ? Type::qint32 : Type::qcint32, {n});
    } else if (chance(2)) {
      const Type w = k % 32 == 0 && k > 0 ? Type::qbint4 : chance(2) ? Type::qcint4 : Type::qcint8;
      table.input1_id = rows_of(x, 1);
      table.filter_id = constant(w, {n, k});
      if (has_bias) table.bias_id = constant(Type::fp32, {n});
      type = any_of(kFloats, random_);
    } else {
      const bool transposed = chance(3);
      const Type w = chance(3) ? any_of(kFloats, random_) : x.type;
      const Dims dims = transposed ? Dims{k, n} : Dims{n, k};
      table.filter_id = chance(4) ? input(w, dims).id : constant(w, dims);
      if (has_bias) table.bias_id = constant(chance(2) ? w : Type::fp32, {n});
      table.flags = transposed ? 1 : 0;
      type = chance(4) ? any_of(kFloats, random_) : x.type;
    }
    Dims out = x.dims;
    out.back() = n;
    table.output_id = inner(type, out);
    const uint32_t id = table.output_id;
    add_node(Kind::XNNFullyConnected, std::move(table));
    return {id, type, out};
  }

  Result add_matmul(const Result& x) {
    if (x.dims.size() < 2 || x.dims.back() > 5000) return x;
    const uint32_t k = x.dims.back(), n = below(40, random_);
    const bool transposed = chance(2), dynamic = chance(2);
    Dims dims = x.dims, out = x.dims;
    for (size_t i = 0; i + 2 < dims.size(); ++i) dims[i] = chance(2) ? 1 : dims[i];
    while (dims.size() > 2 && chance(3)) dims.erase(dims.begin());
    dims[dims.size() - 2] = transposed ? n : k;
    dims.back() = transposed ? k : n;
    out.back() = n;
    fb::_XNNNode2x1T table;
    table.flags = transposed ? 1 : 0;
    Type type = x.type;
    if (dynamic) {
      table.input1_id = rows_of(x, 1);
      is_matrices_ = true;
      const auto rank = static_cast<uint32_t>(dims.size());
      table.input2_id = constant(Type::qcint8, dims, transposed ? rank - 2 : rank - 1);
      is_matrices_ = false;
      type = Type::fp32;
    } else {
      table.input1_id = x.id;
      table.input2_id = chance(2) ? constant(x.type, dims) : input(x.type, dims).id;
    }
    table.output_id = inner(type, out);
    const uint32_t id = table.output_id;
    add_node(Kind::XNNBatchMatrixMultiply, std::move(table));
    return {id, type, out};
  }

  static uint32_t reach(const WindowAxis& axis, int64_t in) {
    using cpu::Size;
    const auto of = [](const uint32_t* field) { return Size(field == nullptr ? 1 : *field); };
    const auto pad = [](const uint32_t* field) { return Size(field == nullptr ? 0 : *field); };
    const Size window = of(axis.dilation) * (of(axis.size) - 1) + 1;
    const Size padding = pad(axis.before) + pad(axis.after);
    const Size stride = axis.stride == nullptr ? of(axis.size) : of(axis.stride);
    const Size out = axis.transposed
                         ? (Size(in) - 1) * stride + pad(axis.adjustment) + window - padding
                         : (Size(in) + padding - window) / max(stride, 1) + 1;
    constexpr int64_t kMost = 1 << 20;
    return static_cast<uint32_t>(std::clamp<int64_t>(out.value_or(kMost), 0, kMost));
  }

  Result add_pooling(const Result& x) {
    Dims out = x.dims;
    if (chance(4)) {
      fb::XNNArgMaxPooling2dT table;
      for (int d = 0; d < 2; ++d) {
        const WindowAxis axis = axis_of(table, d);
        couple(axis, x.dims[static_cast<size_t>(d) + 1], true, random_);
        out[static_cast<size_t>(d) + 1] = reach(axis, x.dims[static_cast<size_t>(d) + 1]);
      }
      table.input_id = x.id;
      table.output_value_id = inner(x.type, out);
      const uint32_t id = table.output_value_id;
      table.output_index_id = add_value(Type::int32, out, 0, 2);
      add_node(Kind::XNNArgMaxPooling2d, std::move(table));
      return {id, x.type, out};
    }
    fb::_XNNPooling2DT table;
    for (int d = 0; d < 2; ++d) {
      const WindowAxis axis = axis_of(table, d);
      couple(axis, x.dims[static_cast<size_t>(d) + 1], true, random_);
      out[static_cast<size_t>(d) + 1] = reach(axis, x.dims[static_cast<size_t>(d) + 1]);
    }
    return finish(any_of(poolings_, random_), std::move(table), x, out);
  }

  Result add_resize(const Result& x) {
    fb::XNNStaticResizeBilinear2DT table;
    const auto number = [&] {
      return chance(8) ? Linear(random_)() & 0x1FFFF : 1 + below(9, random_);
    };
    table.new_height = number();
    table.new_width = number();
    table.flags = chance(2) ? 8 : 0;
    const Dims out = {x.dims[0], table.new_height, table.new_width, x.dims[3]};
    return finish(Kind::XNNStaticResizeBilinear2D, std::move(table), x, out);
  }

  Result add_convolution(const Result& x) {
    const uint32_t channels = x.dims[3];
    if (channels == 0 || channels > 4096) return x;
    const Kind kind = any_of(convolutions_, random_);
    const bool depthwise = kind == Kind::XNNDepthwiseConv2d;
    fb::_XNNNodeConvT table;
    table.groups = depthwise || chance(6) ? channels : 1;
    if (channels % 2 == 0 && chance(4) && !depthwise) table.groups = 2;
    table.group_input_channels = channels / table.groups;
    table.group_output_channels = chance(2) ? 1 : 1 + below(20, random_);
    table.kernel_height = chance(64) ? Linear(random_)() & 0x1FFFF : 1 + below(4, random_);
    table.kernel_width = chance(32) ? Linear(random_)() & 0x1FFFF : 1 + below(4, random_);
    const uint32_t n = table.groups * table.group_output_channels;
    const uint64_t taps = uint64_t{table.kernel_height} * table.kernel_width;
    if (taps * n * table.group_input_channels > (1 << 18)) {
      table.kernel_height = table.kernel_width = 1;
    }
    Dims out = x.dims;
    out[3] = n;
    for (int d = 0; d < 2; ++d) {
      const WindowAxis axis = axis_of(table, kind == Kind::XNNConvTranspose2d, d);
      couple(axis, x.dims[static_cast<size_t>(d) + 1], false, random_);
      out[static_cast<size_t>(d) + 1] = reach(axis, x.dims[static_cast<size_t>(d) + 1]);
    }
    const Dims filter =
        depthwise ? Dims{1, table.kernel_height, table.kernel_width, n}
                  : Dims{n, table.kernel_height, table.kernel_width, table.group_input_channels};
    table.input1_id = x.id;
    table.bias_id = kNone;
    const uint32_t dim = depthwise ? 3 : 0;
    const bool integers = x.type == Type::qint8 || x.type == Type::quint8, has_bias = chance(2);
    Type type = x.type;
    if (integers) {
      table.filter_id = constant(chance(4) ? Type::qint8 : Type::qcint8, filter, dim);
      if (has_bias) table.bias_id = constant(Type::qcint32, {n});
    } else if (!depthwise && chance(4)) {
      table.input1_id = rows_of(x, 3);
      table.filter_id = constant(Type::qcint8, filter, dim);
      if (has_bias) table.bias_id = constant(Type::fp32, {n});
      type = Type::fp32;
    } else {
      table.filter_id = constant(Type::fp32, filter);
      if (has_bias) table.bias_id = constant(any_of(kFloats, random_), {n});
      if (chance(4)) type = any_of(kFloats, random_);
    }
    table.output_id = inner(type, out);
    const uint32_t id = table.output_id;
    add_node(kind, std::move(table));
    return {id, type, out};
  }

  const std::vector<Kind> unary_ = kinds_of({Form::Unary}), slopes_ = kinds_of({Form::Slope}),
                          alphas_ = kinds_of({Form::Alpha}), binary_ = kinds_of({Form::Binary}),
                          concatenations_ = kinds_of({Form::Concatenate}),
                          poolings_ = kinds_of({Form::Pooling}),
                          global_poolings_ = kinds_of({Form::GlobalPooling}),
                          convolutions_ = kinds_of({Form::Convolution});
};

}  // namespace

Bytes generate_payload(Random& random) {
  return Maker(random).make();
}

}  // namespace executorch::backends::xnnpack::testing
