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
 *   Q5_0  [ceil(cols / 64)] blocks of { f16 d[2][16]; u8 h[2][16][4]; u8 q[2][4][16][4] }    704
 *   Q4_1  [cols / 32] blocks of { f16 d[16]; f16 m[16]; u8 q[4][16][4] }                      320
 *   Q5_1  [cols / 32] blocks of { f16 d[16]; f16 m[16]; u8 h[16][4]; u8 q[4][16][4] }         384
 *   IQ4_NL as Q4                                                                              576
 *
 *   Q2_K  [cols / 256] blocks of { f16 d[16], m[16]; u32 s[4][16]; u8 q[16][16][4] }        1,344
 *   Q4_K  [cols / 256] blocks of { f16 d[16], m[16]; u32 s[3][16]; u8 q[32][16][4] }        2,304
 *   Q5_K  the same with u8 h[8][16][4] before q                                             2,816
 *   IQ4_XS [cols / 256] blocks of { f16 d[16]; u16 m[16]; u32 s[1][16]; u8 q[32][16][4] }   2,176
 *   Q3_K  f16 d[cols / 256][16], padded to 64 bytes; then
 *         [cols / 256] blocks of { u32 s[3][16]; u8 h[8][16][4]; u8 q[16][16][4] }          1,728
 *   Q6_K  the same with blocks of { u32 s[4][16]; u8 h[16][16][4]; u8 q[32][16][4] }        3,328
 *
 * In Q8, Q4, Q5_0 and IQ4_NL a block holds two groups of 32 columns. Q8: q[g][j][row][i] is column
 * 32g + 4j + i as value + Q8_ZERO. Q4: the low nibble of q[g][j][row][i] is column 32g + 4j + i,
 * the high one column 32g + 16 + 4j + i, both as value + 8. So it is in all types that have blocks
 * of 32 columns in GGUF; bit j of h[g][row][i], j < 8, is bit 4 of column 32g + 4j + i. cols is a
 * multiple of 32; if it is not a multiple of 64, the second group of the last block of two exists
 * but is never read.
 *
 * The types with blocks of 256 columns have the bits of GGUF, where word j of a row's s, h or q is
 * s[j][row], h[j][row] or q[j][row] here. So packing only turns words around, in these as in all
 * types, and loses nothing: every panel has the bytes that its rows have in the file. blocks.h says
 * which bits make a weight. A panel begins on a 64-byte boundary. */
#ifndef KERNELS_PANELS_H
#define KERNELS_PANELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PANEL = 16, GROUP = 32 };

/* What a byte of Q8 is above its value. x86's products want one unsigned side, ARM's two signed. */
#if defined(__aarch64__)
enum { Q8_ZERO = 0 };
#else
enum { Q8_ZERO = 128 };
#endif

/* The types are called as in GGUF; P_Q8 and P_Q4 are its Q8_0 and Q4_0. */
enum ptype {
    P_F32,
    P_BF16,
    P_Q8,
    P_Q4,
    P_Q4_1,
    P_Q5_0,
    P_Q5_1,
    P_Q2_K,
    P_Q3_K,
    P_Q4_K,
    P_Q5_K,
    P_Q6_K,
    P_IQ4_NL,
    P_IQ4_XS,
    P_TYPES /* their number */
};

struct tune;

/* A view of a packed matrix; whoever allocated the memory owns it. */
struct panels {
    enum ptype type;
    size_t rows, cols;
    size_t panel_bytes;
    const unsigned char *data; /* [ceil(rows / 16)] panels, 64-byte aligned */
    const struct tune *tune;   /* how products walk it (tune.h); NULL: as the default family does */
};

/* Return the name of a type, as GGUF's in small letters: "f32", "bf16", "q8_0", "q4_k", ... */
const char *panels_type_name(enum ptype type);

/* Return the number of panels that this many rows take: ceil(rows / 16). */
size_t panels_count(size_t rows);

/* Compute the bytes of one panel and of the whole matrix; false when cols does not suit the type or
 * the size does not fit in size_t. */
bool panels_bytes(size_t *panel_bytes, size_t *total, enum ptype type, size_t rows, size_t cols);

/* Return how many columns a row has a multiple of: 1, 32 or 256. */
size_t panels_unit(enum ptype type);

/* Return the bytes of `cols` columns of a row in a file, where cols is a multiple of the unit. */
size_t panels_raw(enum ptype type, size_t cols);

/* Fill panel p (panel_bytes at dst, whatever they held) from a row-major source of the same values,
 * which are stored as the type's name says: for P_F32 f32, for P_BF16 bf16, else blocks of GGUF.
 * src is the whole matrix, row after row; it need not be aligned. Packing is exact. Only the rows
 * of panel p are read, so several threads may pack panels of one matrix. */
void panels_pack(unsigned char *dst, enum ptype type, const void *src, size_t rows, size_t cols,
                 size_t p);
/* The same for P_F32 from f16. */
void panels_pack_f16(unsigned char *dst, const void *src, size_t rows, size_t cols, size_t p);

/* Write row r of the matrix to out[cols] as floats; quantised values are value * scale, plus the
 * offset where the type has one. */
void panels_row(float *out, const struct panels *w, size_t r);

#endif
