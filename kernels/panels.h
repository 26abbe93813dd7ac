/* panels.h - the one packed layout of a weight matrix, the same for all instruction sets.
 *
 * A matrix [rows][cols] is cut into panels of 16 rows, so that the lanes of a vector are rows and
 * no kernel ever sums across lanes. Rows beyond the last are zero. One panel has panel_bytes:
 *
 *   F32   [cols][16] float
 *   BF16  [ceil(cols / 2)][16][2] u16: a 32-bit lane holds columns k (low) and k + 1 (high)
 *   Q8    [ceil(cols / 64)] blocks of { f16 scale[2][16]; u8 q[2][8][16][4] }     1,088 bytes
 *   Q4    [ceil(cols / 64)] blocks of { f16 scale[2][16]; u8 q[2][4][16][4] }       576 bytes
 *
 * In Q8 and Q4 a block holds two groups of 32 columns. Q8: q[g][j][row][i] is column 32g + 4j + i
 * as value + 128. Q4: the low nibble of q[g][j][row][i] is column 32g + 4j + i, the high one column
 * 32g + 16 + 4j + i, both as value + 8. cols is a multiple of 32; if it is not a multiple of 64,
 * the second group of the last block exists but is never read. A panel begins on a 64-byte
 * boundary. */
#ifndef KERNELS_PANELS_H
#define KERNELS_PANELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PANEL = 16, GROUP = 32 };

enum ptype { P_F32, P_BF16, P_Q8, P_Q4 };

struct tune;

/* A view of a packed matrix; whoever allocated the memory owns it. */
struct panels {
    enum ptype type;
    size_t rows, cols;
    size_t panel_bytes;
    const unsigned char *data; /* [ceil(rows / 16)] panels, 64-byte aligned */
    const struct tune *tune;   /* how products walk it (tune.h); NULL: as the default family does */
};

/* Return the name of a type: "f32", "bf16", "q8_0" or "q4_0". */
const char *panels_type_name(enum ptype type);

/* Return the number of panels that this many rows take: ceil(rows / 16). */
size_t panels_count(size_t rows);

/* Compute the bytes of one panel and of the whole matrix; false when cols does not suit the type or
 * the size does not fit in size_t. */
bool panels_bytes(size_t *panel_bytes, size_t *total, enum ptype type, size_t rows, size_t cols);

/* Fill panel p (panel_bytes at dst, whatever they held) from a row-major source of the same values:
 * F32 from f32 or f16, BF16 from bf16, Q8 from GGUF Q8_0 blocks, Q4 from GGUF Q4_0 blocks. src is
 * the whole matrix, row after row; it need not be aligned. Packing is exact. Only the rows of panel
 * p are read, so several threads may pack panels of one matrix. */
void panels_pack_f32(unsigned char *dst, const void *src, size_t rows, size_t cols, size_t p);
void panels_pack_f16(unsigned char *dst, const void *src, size_t rows, size_t cols, size_t p);
void panels_pack_bf16(unsigned char *dst, const void *src, size_t rows, size_t cols, size_t p);
void panels_pack_q8_0(unsigned char *dst, const void *src, size_t rows, size_t cols, size_t p);
void panels_pack_q4_0(unsigned char *dst, const void *src, size_t rows, size_t cols, size_t p);

/* Write row r of the matrix to out[cols] as floats; quantised values are value * scale. */
void panels_row(float *out, const struct panels *w, size_t r);

#endif
