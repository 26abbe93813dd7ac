/* t_base.c - status text, checked sizes, and the choice of an instruction set. */
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/cpu.h"
#include "kernels/kernels.h"
#include "tests/support/test.h"

/* Control characters are replaced, long text is truncated, and err may be NULL. */
static void errors(void)
{
    struct err e;
    CHECK(err_set(&e, ERR_FORMAT, "%s: bad magic %d", "a\nb\x7f\x1b", 7) == ERR_FORMAT);
    CHECK(!strcmp(e.msg, "a?b??: bad magic 7"));
    CHECK(err_set(NULL, ERR_IO, "nobody reads this") == ERR_IO);
    char lengthy[2 * sizeof(e.msg)];
    memset(lengthy, 'x', sizeof(lengthy));
    lengthy[sizeof(lengthy) - 1] = 0;
    err_set(&e, ERR_ARG, "%s", lengthy);
    CHECK(strlen(e.msg) == sizeof(e.msg) - 1);
}

static void sizes(void)
{
    size_t v = 42;
    CHECK(size_add(&v, SIZE_MAX - 1, 1) && v == SIZE_MAX);
    CHECK(!size_add(&v, SIZE_MAX, 1) && v == SIZE_MAX);
    CHECK(size_mul(&v, SIZE_MAX / 2, 2) && v == SIZE_MAX - 1);
    CHECK(!size_mul(&v, SIZE_MAX / 2 + 1, 2) && v == SIZE_MAX - 1);
    CHECK(size_mul(&v, 0, SIZE_MAX) && v == 0);
    CHECK(size_mul(&v, SIZE_MAX, 0) && v == 0);
    CHECK(size_align(&v, 65, 64) && v == 128);
    CHECK(size_align(&v, 64, 64) && v == 64);
    CHECK(!size_align(&v, SIZE_MAX, 64) && v == 64);
    CHECK(size_within(0, 0, 0) && size_within(3, 7, 10));
    CHECK(!size_within(3, 8, 10) && !size_within(11, 0, 10) && !size_within(3, SIZE_MAX, 10));
}

/* Sizes that a file could state, those that overflow included. */
static void panel_sizes(void)
{
    size_t panel, total;
    CHECK(panels_bytes(&panel, &total, P_F32, 17, 3) && panel == 192 && total == 384);
    CHECK(panels_bytes(&panel, &total, P_BF16, 16, 3) && panel == 128 && total == 128);
    CHECK(panels_bytes(&panel, &total, P_Q8, 1, 96) && panel == 2176 && total == 2176);
    CHECK(panels_bytes(&panel, &total, P_Q4, 33, 64) && panel == 576 && total == 3 * 576);
    CHECK(!panels_bytes(&panel, &total, P_Q8, 16, 33));
    CHECK(!panels_bytes(&panel, &total, P_Q4, 16, 16));
    CHECK(!panels_bytes(&panel, &total, P_F32, 16, 0));
    CHECK(!panels_bytes(&panel, &total, P_F32, SIZE_MAX, 64));
    CHECK(!panels_bytes(&panel, &total, P_F32, 16, SIZE_MAX / 32));
    CHECK(panels_count(0) == 0 && panels_count(1) == 1 && panels_count(16) == 1 &&
          panels_count(17) == 2 && panels_count(SIZE_MAX) == SIZE_MAX / 16 + 1);
}

/* Any name in the list of sets is accepted if the set runs here; others are refused by name. */
static void picks(void)
{
    struct kernels k;
    struct err e;
    unsigned cpu = cpu_detect();
    CHECK(kernels_pick(&k, NULL, cpu, &e) == OK && !(k.needs & CPU_INEXACT));
    CHECK(kernels_pick(&k, NULL, 0, &e) == OK && !strcmp(k.isa, "scalar"));
    for (size_t i = 0; i < kernels_nsets; i++) {
        const char *isa = kernels_sets[i]->isa;
        int want = kernels_ready(kernels_sets[i], cpu) ? OK : ERR_ARG;
        CHECK(kernels_pick(&k, isa, cpu, &e) == want);
        CHECK(want || !strcmp(k.isa, isa));
        CHECK(kernels_pick(&k, isa, 0, &e) == (i ? ERR_ARG : OK));
#define X(op) CHECK(k.op);
        KERNEL_OPS(X)
#undef X
    }
    CHECK(kernels_pick(&k, "z80", cpu, &e) == ERR_ARG);
    CHECK(strstr(e.msg, "'z80'") && strstr(e.msg, "scalar"));
    CHECK(*cpu_name());
}

int main(void)
{
    errors();
    sizes();
    panel_sizes();
    picks();
    return 0;
}
