/* fuzz_template.c - chat templates, which are programs: they render, or are refused in bounded
 * time. */
#include <string.h>

#include "kernels/sys/base.h"
#include "model/text/chat.h"
#include "model/text/jinja.h"
#include "tests/fuzz/fuzz.h"

const bool fuzz_whole = false;

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static const struct chat_message messages[] = { { "system", "Be brief.", 9 },
                                                    { "user", "One?\n", 5 },
                                                    { "assistant", "<think>\nx\n</think>\n\ntwo",
                                                      24 },
                                                    { "user", "three", 5 } };
    struct err err = { "" };
    char *text = NULL;
    fuzz_begin();
    int code = jinja_render(&text, (const char *)p, n, messages, n % 4 + 1, JINJA_UNSET, &err);
    CHECK((code == OK) == (text != NULL));
    free(text);
    fuzz_end(code, &err);
    return 0;
}

/* Pieces of the templates that are known, then these as a whole. */
static const char *const texts[] = {
    "{%- for m in messages %}\n<|im_start|>{{ m['role'] + '\\n' + m.content }}<|im_end|>\n"
    "{%- endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
    "{%- set ns = namespace(i=0) %}{% for m in messages[::-1] %}{% set ns.i = loop.index0 %}"
    "{% if m.role == 'user' and not (m.content.startswith('<t>') and m.content.endswith('</t>')) %}"
    "{{ ns.i }}{% elif loop.last %}{{ m.content.split('</think>')[-1].lstrip('\\n') }}{% endif %}"
    "{% endfor %}",
    "{# comment #}{% macro x(a) %}{{ a }}{% endmacro %}{{ messages | length }}{{ 'a' + 'b' }}"
    "{{ messages[0].content | trim }}{% if tools is defined %}x{% else %}y{% endif %}",
};

static const char *const names[] = { "Qwen-Qwen2.5-7B-Instruct.jinja", "Qwen-QwQ-32B.jinja",
                                     "Qwen-Qwen3-0.6B.jinja" };

size_t fuzz_seed(size_t i, uint8_t *out, size_t room)
{
    size_t n = sizeof(texts) / sizeof(*texts);
    char name[128];
    if (i < n)
        return fuzz_join(out, 0, room, texts[i], strlen(texts[i]));
    if (i - n >= sizeof(names) / sizeof(*names))
        return 0;
    snprintf(name, sizeof(name), "tokenizer/templates/%s", names[i - n]);
    return fuzz_data(out, room, name);
}
