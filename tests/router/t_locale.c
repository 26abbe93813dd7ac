/* t_locale.c - in a program whose locale has a decimal comma, config.json is read as ever.
 * t_embed.sh writes a whole answer in such a program. */
#include <locale.h>

#include "tests/support/test.h"
#include "weights/hf_config.h"
#include "weights/table.h"

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
    char clean[128];
    folder = scratch_folder();
    bool comma = begin_comma();
    if (comma)
        check_config();
    snprintf(clean, sizeof(clean), "rm -r %s/comma*", folder);
    CHECK(system(clean) == 0);
    if (!comma)
        printf("SKIP: no locale with a decimal comma: localedef makes none, and de_DE.UTF-8 is not "
               "there\n");
    return comma ? 0 : 77;
}
