/* t_locale.c - in a program whose locale has a decimal comma, router files are the same, and they
 * and config.json are read as ever. t_embed.sh writes a whole answer in such a program. */
#include <locale.h>

#include "router/learn/form_save.h"
#include "router/router.h"
#include "tests/support/test.h"
#include "weights/hf_config.h"
#include "weights/table.h"

enum { ROOM = 4096 };

static const char *folder;
static struct err err;

/* Let numbers have a comma from here on; false if there is no such locale. macOS has one, and does
 * not read LOCPATH. */
static bool begin_comma(void)
{
    char make[128];
    snprintf(make, sizeof(make), "sh tests/router/comma_locale.sh %s", folder);
    if (system(make) == 0)
        CHECK(setenv("LOCPATH", folder, 1) == 0);
    return (setlocale(LC_ALL, "comma") || setlocale(LC_ALL, "de_DE.UTF-8")) &&
           strcmp(localeconv()->decimal_point, ",") == 0;
}

/* Return a number that a router file can hold, plain or with an exponent. */
static float number(size_t i)
{
    static const float some[] = { 0.25f, 0.1f, 1, 0, 1e-7f, 0.333333343f, 1.17549435e-38f };
    return i < sizeof(some) / sizeof(*some) ? some[i] : -1;
}

/* Write the router of number i and return the bytes of its file. */
static size_t write_router(unsigned char bytes[ROOM], size_t i)
{
    static float w1[] = { 1, -0.5f, 0, 0.125f }, b1[] = { 0.5f, 1e-9f }, w2[] = { 2, 4 };
    struct router_form f = { .width = 2, .dim = 2, .members = 1, .w1 = w1, .b1 = b1, .w2 = w2 };
    f.has_threshold = f.about.has_share = true;
    f.threshold = f.about.share = number(i);
    CHECK(form_save(in_scratch("router"), &f, &err) == OK);
    return slurp(in_scratch("router"), bytes, ROOM);
}

static void check_router(size_t i)
{
    struct router_form f;
    CHECK(router_form_read(&f, in_scratch("router"), &err) == OK);
    CHECK(f.has_threshold && f.threshold == number(i) && f.about.share == number(i));
    CHECK(f.b1[1] == 1e-9f);
    router_form_close(&f);
}

static void check_config(void)
{
    static const char text[] =
        "{\"architectures\": [\"Qwen2ForCausalLM\"], \"model_type\": \"qwen2\", "
        "\"hidden_act\": \"silu\", \"hidden_size\": 16, \"intermediate_size\": 32, "
        "\"num_hidden_layers\": 1, \"num_attention_heads\": 4, \"num_key_value_heads\": 2, "
        "\"vocab_size\": 24, \"max_position_embeddings\": 64, \"rms_norm_eps\": 1.5e-06, "
        "\"rope_theta\": 10000.5, \"tie_word_embeddings\": false}";
    struct weights *w = table_new(folder, "folder");
    struct hf_config c;
    double eps, theta;
    spill(in_scratch("config.json"), text, sizeof(text) - 1);
    CHECK(w && hf_config_read(w, &c, &err) == OK && table_index(w, &err) == OK);
    CHECK(weights_f64(w, "qwen2.attention.layer_norm_rms_epsilon", &eps));
    CHECK(weights_f64(w, "qwen2.rope.freq_base", &theta));
    CHECK((float)eps == 1.5e-6f && (float)theta == 10000.5f);
    weights_close(w);
}

int main(void)
{
    static unsigned char bytes[8][ROOM], again[ROOM];
    size_t sizes[8], n = 0;
    char clean[128];
    folder = scratch_folder();
    for (; number(n) >= 0; n++) {
        sizes[n] = write_router(bytes[n], n);
        check_router(n);
    }
    bool comma = begin_comma();
    for (size_t i = 0; comma && i < n; i++) {
        CHECK(write_router(again, i) == sizes[i] && memcmp(again, bytes[i], sizes[i]) == 0);
        check_router(i);
    }
    if (comma)
        check_config();
    snprintf(clean, sizeof(clean), "rm -r %s/comma*", folder);
    CHECK(system(clean) == 0);
    if (!comma)
        printf("SKIP: no locale with a decimal comma: localedef makes none, and de_DE.UTF-8 is not "
               "there\n");
    return comma ? 0 : 77;
}
