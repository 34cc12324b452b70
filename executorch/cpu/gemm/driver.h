/// The driver of products of many rows. It is generic over the kind of product, class Product
/// below.
///
/// C is divided into blocks and the sum into K-slices (division.h). A thread takes one block after
/// the other. It multiplies the rows of A of one tile by all packed panels of B, then those of the
/// next tile: the rows stay in the L1 cache, the panels in L2. Meanwhile the next block's panels
/// are prefetched and packed into a second buffer, a little at a time, so that memory is read all
/// the time and what was prefetched is packed before it is evicted. If packing is mere copying, the
/// microkernels do it between their multiply-adds; otherwise the driver does it after each tile. If
/// panels are packed already, or all rows of a block stay in L2, the loops can be exchanged
/// (panels_first()): then each panel is multiplied by all tiles before the next panel.
///
/// A Product has these members; t is a KSlice, j a column of its block:
///   division()                  the Division
///   memory()                    the Memory that a thread needs
///   Rows                        a type: rows of A as microkernels read them, and a thread's state
///   enter(t, after, buffers, rows)   begins slice t. `after` is the slice that the thread
///                               multiplies next, or null. Returns the number of tiles of t
///   prepare(t, tile, n_tiles, buffers, rows)   makes the rows of A of one tile ready
///   panel_width(t, j)           the columns of the panel that begins at column j
///   multiply(t, j, buffers, rows)    multiplies the rows of the tile by the panel at column j, and
///                               finishes the results if t is the last slice
///   units(t)                    the number of units of work that packing all panels of t takes
///   tiles_pack(t)               whether the microkernels, as told by enter(), prefetch and pack
///                               the panels of t while they multiply the slice before it
///   pack_rest(t, panels, rows)  packs the part of t that the microkernels did not pack
///   fetch(t, begin, end, rows)  lets the next multiply() prefetch what units [begin, end) are
///                               packed from, or the first of these units; returns their number
///   pack(t, begin, end, panels) packs units [begin, end) immediately
/// A Product that can exchange the loops over tiles and panels also has
///   panels_first()              whether each panel is multiplied by all tiles before the next
///   looks_ahead()               whether run_panels() takes the next block before it computes
///                               the current one
///   multiply_panel(t, j, buffers, rows)   multiplies all rows of t by the panel at column j
#pragma once

#include <executorch/cpu/gemm/division.h>
#include <executorch/cpu/scratch.h>

#include <atomic>
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

template <class Product>
concept TakesPanels = requires(const Product& product) {
  product.panels_first();
};

template <class Product>
class Driver {
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
      if constexpr (TakesPanels<Product>) {
        if (product_.panels_first()) return run_panels(next, own);
      }
      run_blocks(next, own);
    });
    return true;
  }

 private:
  static constexpr int64_t kLine = Scratch::kLine, kRateUnit = 1 << 20, kLagPanels = 2;

  bool panels_first() const {
    if constexpr (TakesPanels<Product>) return product_.panels_first();
    return false;
  }

  /// Computes blocks, taken from the counter `next`, until none is left. Each panel is multiplied
  /// by all tiles before the next panel.
  void run_panels(std::atomic<int64_t>& next, const Buffers& buffers) const {
    const int64_t n_blocks = division_.n_blocks();
    typename Product::Rows rows;
    int64_t block = next++, number = 0;
    while (block < n_blocks) {
      const KSlice t = division_.slice(block, number);
      const bool ends = ++number == division_.n_slices;
      if (ends) number = 0;
      if (ends && product_.looks_ahead()) block = next++;
      const KSlice after = division_.slice(std::min(block, n_blocks - 1), number);
      product_.enter(t, block < n_blocks ? &after : nullptr, buffers, rows);
      for (int64_t j = 0; j < t.nj; j += product_.panel_width(t, j)) {
        product_.multiply_panel(t, j, buffers, rows);
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
    typename Product::Rows rows;
    product_.pack(slice, 0, product_.units(slice), buffers.panels);
    while (true) {
      if (++number == division_.n_slices) block = next++, number = 0;
      if (block >= n_blocks) return run_slice(slice, buffers, rows, nullptr);
      const KSlice after = division_.slice(block, number);
      run_slice(slice, buffers, rows, &after);
      slice = after;
      std::swap(buffers.panels, buffers.next_panels);
    }
  }

  /// Multiplies slice t. Meanwhile prefetches and packs the panels of `after`, the next slice,
  /// unless it is null.
  void run_slice(const KSlice& t, const Buffers& buffers, typename Product::Rows& rows,
                 const KSlice* after) const {
    const int64_t n_tiles = product_.enter(t, after, buffers, rows);
    const bool tiles_pack = after != nullptr && product_.tiles_pack(*after);
    const int64_t units = after == nullptr || tiles_pack ? 0 : product_.units(*after);
    // Units become due in proportion to the columns that are done; each tile has t.nj columns. A
    // unit is packed `lag` columns after it was prefetched: by then its cache lines have arrived
    // and are still in the cache.
    const int64_t columns = n_tiles * t.nj;
    const int64_t lag = std::min(kLagPanels * product_.panel_width(t, 0), columns / 2);
    const int64_t rate = units * kRateUnit / (columns - lag) + 1;  // per column; rounded up
    const auto due = [&](int64_t n) {
      return std::min(rate * std::max<int64_t>(n, 0) / kRateUnit, units);
    };
    int64_t fetched = 0, packed = 0;
    for (int64_t tile = 0; tile < n_tiles; ++tile) {
      product_.prepare(t, tile, n_tiles, buffers, rows);
      for (int64_t j = 0, width; j < t.nj; j += width) {
        width = product_.panel_width(t, j);
        if (units == 0) {
          product_.multiply(t, j, buffers, rows);
          continue;
        }
        const int64_t done = tile * t.nj + std::min(j + width, t.nj), end = due(done - lag);
        fetched += product_.fetch(*after, fetched, due(done), rows);
        product_.multiply(t, j, buffers, rows);
        if (packed < end) product_.pack(*after, packed, end, buffers.next_panels);
        packed = end;
      }
    }
    if (tiles_pack) product_.pack_rest(*after, buffers.next_panels, rows);
  }

  const Product& product_;
  const Division& division_;
};

}  // namespace executorch::cpu::gemm
