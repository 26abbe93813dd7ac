/* Checkpoints of R2R, written here in PyTorch's old form: their layer norms prove whether the
 * inputs are normalised, whatever they say or do not; what no layer reads is refused. */
#include "tests/router/loop_help.h"
#include "tests/router/router_help.h"
#include "tests/support/files.h"
#include "weights/weights.h"

static const char *path;
static struct weights *w;

#define PUT(f, bytes) CHECK(fwrite(bytes, sizeof(bytes) - 1, 1, f) == 1)

static void put_text(FILE *f, const char *text)
{
    uint32_t n = (uint32_t)strlen(text);
    CHECK(fputc('X', f) == 'X' && fwrite(&n, 4, 1, f) == 1 && fwrite(text, 1, n, f) == n);
}

static void put_numbers(FILE *f, const size_t *v, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        int32_t number = (int32_t)v[i];
        CHECK(fputc('J', f) == 'J' && fwrite(&number, 4, 1, f) == 1);
    }
}

static void put_tensor(FILE *f, const struct tensor *t)
{
    const size_t count = t->bytes / sizeof(float), strides[] = { t->shape[1], 1 };
    bool matrix = t->ndim == 2;
    put_text(f, t->name);
    PUT(f, "ctorch._utils\n_rebuild_tensor_v2\n((");
    put_text(f, "storage");
    PUT(f, "ctorch\nFloatStorage\n");
    put_text(f, t->name);
    put_text(f, "cpu");
    put_numbers(f, &count, 1);
    PUT(f, "NtQK\0");
    put_numbers(f, t->shape, t->ndim);
    fputc(matrix ? 0x86 : 0x85, f);
    put_numbers(f, matrix ? strides : strides + 1, t->ndim);
    fputc(matrix ? 0x86 : 0x85, f);
    PUT(f, "\x89"
           "ccollections\nOrderedDict\n)RtR");
}

/* Tensors whose names begin so are left out. */
static const char *without[2];

static bool kept(const struct tensor *t)
{
    for (size_t i = 0; i < 2; i++)
        if (without[i] && strncmp(t->name, without[i], strlen(without[i])) == 0)
            return false;
    return true;
}

/* Write the tensors of w. normalise and threshold are a pickle's; without them nothing is said. */
static void pt_write(const char *normalise, const char *threshold)
{
    size_t most = weights_ntensors(w);
    FILE *f = fopen(path, "wb");
    CHECK(f);
    PUT(f, "\x80\x02\x8a\x0al\xfc\x9c"
           "F\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}(X\x0d\0\0\0little_endian\x88u."
           "\x80\x02}(");
    put_text(f, "state_dict");
    PUT(f, "}(");
    for (size_t i = 0; i < most; i++)
        if (kept(weights_tensor(w, i)))
            put_tensor(f, weights_tensor(w, i));
    PUT(f, "u");
    const char *const said[][3] = { { "init_args", "normalize_input", normalise },
                                    { "common_args", "threshold", threshold } };
    for (size_t i = 0; i < 2; i++)
        if (said[i][2]) {
            put_text(f, said[i][0]);
            PUT(f, "}(");
            put_text(f, said[i][1]);
            CHECK(fputs(said[i][2], f) >= 0);
            PUT(f, "u");
        }
    PUT(f, "u.\x80\x02](");
    for (size_t i = 0; i < most; i++)
        if (kept(weights_tensor(w, i)))
            put_text(f, weights_tensor(w, i)->name);
    PUT(f, "e.");
    for (size_t i = 0; i < most; i++) {
        const struct tensor *t = weights_tensor(w, i);
        uint64_t count = t->bytes / sizeof(float);
        if (kept(t))
            CHECK(fwrite(&count, 8, 1, f) == 1 && fwrite(t->data, t->bytes, 1, f) == 1);
    }
    CHECK(fclose(f) == 0);
}

static void softens(bool expected)
{
    struct router_form form;
    struct err err = { "" };
    CHECK_MSG(router_form_read(&form, path, &err) == OK, "%s", err.msg);
    CHECK(form.softmax == expected);
    router_form_close(&form);
}

#define TRUE  "\x88"
#define FALSE "\x89"

static void refused(const char *why)
{
    struct err err = { "" };
    struct router *r;
    CHECK(router_open(&r, path, &kernels_scalar, &err) == ERR_FORMAT && !r);
    CHECK_MSG(strstr(err.msg, why) && strstr(err.msg, path), "%s", err.msg);
}

/* Layer norms prove that the logits pass through a softmax, whatever is said or not. */
static void test_softmax(void)
{
    static const char *const fine[] = { NULL, TRUE, "K\1" };
    for (size_t i = 0; i < 3; i++) {
        pt_write(fine[i], NULL);
        softens(true);
    }
    pt_write(FALSE, NULL);
    refused("init_args.normalize_input: expected True with layer norms, found False");
    without[0] = "layer_norm";
    pt_write(NULL, "G?\xd0\1\1\1\1\1\1"); /* a little more than 0.25 */
    softens(false);
    pt_write(TRUE, NULL);
    refused("init_args.normalize_input: expected False without layer norms, found True");
    without[1] = "combined_projection"; /* logits alone, of which nothing tells */
    pt_write(TRUE, NULL);
    softens(true);
    pt_write(FALSE, NULL);
    softens(false);
    pt_write(NULL, NULL);
    refused("init_args.normalize_input: expected True or False, found none");
    without[0] = without[1] = NULL;
}

/* Tensors that no layer reads, and a threshold that is none. */
static void test_left_over(void)
{
    without[0] = "layer_norm_hidden_states";
    pt_write(NULL, NULL);
    refused("tensor layer_norm_token.weight: expected only what layers read, found it");
    without[0] = "backbone.blocks.0";
    pt_write(NULL, NULL);
    refused("backbone.");
    without[0] = NULL;
    pt_write(NULL, "U\3abc");
    refused("common_args.threshold: expected a number of 0 to 1, found nan");
}

int main(void)
{
    const char *file = in_scratch("tensors");
    struct router *r;
    path = in_scratch("router");
    deep_write(file, 32, 7, "critical", NULL);
    CHECK(weights_open(&w, file, NULL) == OK);
    pt_write(NULL, NULL);
    CHECK(router_open(&r, path, &kernels_scalar, NULL) == OK);
    router_close(r);
    test_softmax();
    test_left_over();
    weights_close(w);
    return 0;
}
