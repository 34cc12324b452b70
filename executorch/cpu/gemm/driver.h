/// The driver of products of many rows. It is generic over the kind of product: the concept
/// DriverProduct below says what it needs of one.
///
/// C is divided into blocks and the sum into K-slices (division.h). A thread takes one block after
/// the other. It multiplies the rows of A of one tile by all packed panels of B, then those of the
/// next tile: the rows stay in the L1 cache, the panels in L2. Meanwhile the next block's panels
/// are prefetched and packed into a second buffer, a little at a time, so that memory is read all
/// the time and what was prefetched is packed before it is evicted. If packing is mere copying, the
/// microkernels do it between their multiply-adds; otherwise the driver does it after each tile. If
/// panels are packed already, or all rows of a block stay in L2, the loops can be exchanged
/// (panels_first()): then each panel is multiplied by all tiles before the next panel.
#pragma once

#include <executorch/cpu/gemm/division.h>
#include <executorch/cpu/scratch.h>

#include <atomic>
#include <concepts>
#include <utility>

namespace executorch::cpu::gemm {

/// The addresses of the parts of a thread's memory.
struct Buffers {
  uint8_t *panels, *next_panels, *rows, *sums;
};
/// The sizes in bytes of the parts of a thread's memory.
struct Memory {
  Size panels, rows, sums;
};

/// What the driver needs of every Product. `t` is a K-slice, `j` a column of its block, and `state`
/// what a thread remembers between calls; a Product names its type ThreadState.
template <class Product>
concept DriverProduct = requires(const Product& product, typename Product::ThreadState& state,
                                 const KSlice& t, const KSlice* after, const Buffers& buffers,
                                 int64_t j, int64_t tile, int64_t n_tiles, int64_t begin,
                                 int64_t end, uint8_t* panels) {
  { product.division() } -> std::convertible_to<const Division&>;
  /// The memory that a thread needs.
  { product.memory() } -> std::same_as<Memory>;
  /// Begins slice t. `after` is the slice that the thread multiplies next, or null. Returns the
  /// number of tiles of t.
  { product.enter(t, after, buffers, state) } -> std::same_as<int64_t>;
  /// Makes the rows of A of one tile ready.
  product.prepare(t, tile, n_tiles, buffers, state);
  /// The columns of the panel that begins at column j.
  { product.panel_width(t, j) } -> std::same_as<int64_t>;
  /// Multiplies the rows of the tile by the panel at column j, and finishes the results if t is the
  /// last slice.
  product.multiply(t, j, buffers, state);
  /// The number of steps that packing all panels of t takes.
  { product.pack_steps(t) } -> std::same_as<int64_t>;
  /// Whether the microkernels, as told by enter(), prefetch and pack the panels of t while they
  /// multiply the slice before it.
  { product.tiles_pack(t) } -> std::same_as<bool>;
  /// Packs the part of t that the microkernels did not pack.
  product.pack_rest(t, panels, state);
  /// Lets the next multiply() prefetch what the steps [begin, end) pack, or what the first of these
  /// steps do. Returns the number of these steps.
  { product.fetch(t, begin, end, state) } -> std::same_as<int64_t>;
  /// Does the steps [begin, end) of packing now.
  product.pack(t, begin, end, panels);
};

/// Whether a Product can exchange the loops over tiles and panels. It then is a PanelsFirstProduct.
template <class Product>
concept HasPanelsFirst = requires(const Product& product) {
  product.panels_first();
};
template <class Product>
concept PanelsFirstProduct = requires(const Product& product, typename Product::ThreadState& state,
                                      const KSlice& t, int64_t j, const Buffers& buffers) {
  /// Whether each panel is multiplied by all tiles before the next panel.
  { product.panels_first() } -> std::same_as<bool>;
  /// Whether run_panels() takes the next block before it computes the current one.
  { product.looks_ahead() } -> std::same_as<bool>;
  /// Multiplies all rows of t by the panel at column j.
  product.multiply_panel(t, j, buffers, state);
};

template <DriverProduct Product>
class Driver {
  static_assert(!HasPanelsFirst<Product> || PanelsFirstProduct<Product>);

 public:
  explicit Driver(const Product& product) : product_(product), division_(product.division()) {}

  /// Computes the product. Returns false, before anything is written, if memory is refused.
  [[nodiscard]] bool run(Scratch& scratch) const {
    const Memory memory = product_.memory();
    const Size panels = round_up(memory.panels, kLine), rows = round_up(memory.rows, kLine);
    const Size next_panels =
        division_.n_blocks() * division_.n_slices > 1 && !panels_first() ? panels : 0;
    const Size size = panels + next_panels + rows + round_up(memory.sums, kLine);
    const int64_t workers = division_.workers();
    const Scratch::Frame frame(scratch);
    uint8_t* const buffers = scratch.array<uint8_t>(size * workers);
    if (buffers == nullptr) return false;
    std::atomic<int64_t> next{0};
    parallel_for(workers, 1, [&](int64_t worker, int64_t) {
      uint8_t* const begin = buffers + worker * size.value();
      uint8_t* const behind = begin + (panels + next_panels).value();
      const Buffers own{begin, begin + panels.value(), behind, behind + rows.value()};
      if constexpr (HasPanelsFirst<Product>) {
        if (product_.panels_first()) return run_panels(next, own);
      }
      run_blocks(next, own);
    });
    return true;
  }

 private:
  static constexpr int64_t kLine = Scratch::kLine, kLagPanels = 2;
  static constexpr int64_t kOneStep = 1 << 20;  // one step of packing as a fixed-point number

  bool panels_first() const {
    if constexpr (HasPanelsFirst<Product>) return product_.panels_first();
    return false;
  }

  /// Computes blocks, taken from the counter `next`, until none is left. Each panel is multiplied
  /// by all tiles before the next panel.
  void run_panels(std::atomic<int64_t>& next, const Buffers& buffers) const {
    const int64_t n_blocks = division_.n_blocks();
    typename Product::ThreadState state;
    int64_t block = next++, number = 0;
    while (block < n_blocks) {
      const KSlice t = division_.slice(block, number);
      const bool ends = ++number == division_.n_slices;
      if (ends) number = 0;
      if (ends && product_.looks_ahead()) block = next++;
      const KSlice after = division_.slice(std::min(block, n_blocks - 1), number);
      product_.enter(t, block < n_blocks ? &after : nullptr, buffers, state);
      for (int64_t j = 0; j < t.nj; j += product_.panel_width(t, j)) {
        product_.multiply_panel(t, j, buffers, state);
      }
      if (ends && !product_.looks_ahead()) block = next++;
    }
  }

  /// The same with the other order of loops: each tile is multiplied by all panels before the next
  /// tile. The next block is taken before the current one is computed, so that its panels can be
  /// packed ahead.
  void run_blocks(std::atomic<int64_t>& next, Buffers buffers) const {
    const int64_t n_blocks = division_.n_blocks();
    int64_t block = next++, number = 0;
    if (block >= n_blocks) return;
    KSlice slice = division_.slice(block, number);
    typename Product::ThreadState state;
    product_.pack(slice, 0, product_.pack_steps(slice), buffers.panels);
    while (true) {
      if (++number == division_.n_slices) block = next++, number = 0;
      if (block >= n_blocks) return run_slice(slice, buffers, state, nullptr);
      const KSlice after = division_.slice(block, number);
      run_slice(slice, buffers, state, &after);
      slice = after;
      std::swap(buffers.panels, buffers.next_panels);
    }
  }

  /// Multiplies slice t. Meanwhile prefetches and packs the panels of `after`, the next slice,
  /// unless it is null.
  void run_slice(const KSlice& t, const Buffers& buffers, typename Product::ThreadState& state,
                 const KSlice* after) const {
    const int64_t n_tiles = product_.enter(t, after, buffers, state);
    const bool tiles_pack = after != nullptr && product_.tiles_pack(*after);
    const int64_t steps = after == nullptr || tiles_pack ? 0 : product_.pack_steps(*after);
    // Steps of packing become due in proportion to the columns that are done; each tile has t.nj
    // columns. What a step packs is prefetched `lag` columns earlier: by then its cache lines have
    // arrived and are still in the cache.
    const int64_t columns = n_tiles * t.nj;
    const int64_t lag = std::min(kLagPanels * product_.panel_width(t, 0), columns / 2);
    const int64_t rate = steps * kOneStep / (columns - lag) + 1;  // per column; rounded up
    const auto due = [&](int64_t n) {
      return std::min(rate * std::max<int64_t>(n, 0) / kOneStep, steps);
    };
    int64_t fetched = 0, packed = 0;
    for (int64_t tile = 0; tile < n_tiles; ++tile) {
      product_.prepare(t, tile, n_tiles, buffers, state);
      for (int64_t j = 0, width; j < t.nj; j += width) {
        width = product_.panel_width(t, j);
        if (steps == 0) {
          product_.multiply(t, j, buffers, state);
          continue;
        }
        const int64_t done = tile * t.nj + std::min(j + width, t.nj), end = due(done - lag);
        fetched += product_.fetch(*after, fetched, due(done), state);
        product_.multiply(t, j, buffers, state);
        if (packed < end) product_.pack(*after, packed, end, buffers.next_panels);
        packed = end;
      }
    }
    if (tiles_pack) product_.pack_rest(*after, buffers.next_panels, state);
  }

  const Product& product_;
  const Division& division_;
};

}  // namespace executorch::cpu::gemm
