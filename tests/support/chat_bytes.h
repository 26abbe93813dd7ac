/* chat_bytes.h - a tokenizer of bytes, each with its value as id, with the marks of a chat. */
#ifndef TESTS_SUPPORT_CHAT_BYTES_H
#define TESTS_SUPPORT_CHAT_BYTES_H

#include "model/text/tokenizer.h"
#include "model/text/vocabulary.h"
#include "tests/support/letters.h"
#include "tests/support/test.h"

enum { CHAT_BYTES_MARKS = 8 };
static const char *const chat_bytes_marks[CHAT_BYTES_MARKS] = {
    "<|im_start|>",
    "<|im_end|>",
    "<think>",
    "</think>",
    "<\xef\xbd\x9c"
    "begin\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>",
    "<\xef\xbd\x9cUser\xef\xbd\x9c>",
    "<\xef\xbd\x9c"
    "Assistant\xef\xbd\x9c>",
    "<\xef\xbd\x9c"
    "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>"
};

#define CHAT_CHATML                                                                                \
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] " \
    "+ "                                                                                           \
    "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' " \
    "}}{% endif %}"

/* The chat templates of DeepSeek-R1-Distill-Qwen, as their tokenizer_config.json has them. The
 * later one differs in its last words. */
#define CHAT_DEEPSEEK_BODY                                                                   \
    "{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{%" \
    " endif %}{% set ns = namespace(is_first=false, is_tool=false, is_output_first=true, sy" \
    "stem_prompt='') %}{%- for message in messages %}{%- if message['role'] == 'system' %}{" \
    "% set ns.system_prompt = message['content'] %}{%- endif %}{%- endfor %}{{bos_token}}{{" \
    "ns.system_prompt}}{%- for message in messages %}{%- if message['role'] == 'user' %}{%-" \
    " set ns.is_tool = false -%}{{'<｜User｜>' + message['content']}}{%- endif %}{%- if m" \
    "essage['role'] == 'assistant' and message['content'] is none %}{%- set ns.is_tool = fa" \
    "lse -%}{%- for tool in message['tool_calls']%}{%- if not ns.is_first %}{{'<｜Assistan" \
    "t｜><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>' + tool['type'] + '<｜to" \
    "ol▁sep｜>' + tool['function']['name'] + '\\n' + '```json' + '\\n' + tool['function'" \
    "]['arguments'] + '\\n' + '```' + '<｜tool▁call▁end｜>'}}{%- set ns.is_first = tr" \
    "ue -%}{%- else %}{{'\\n' + '<｜tool▁call▁begin｜>' + tool['type'] + '<｜tool▁" \
    "sep｜>' + tool['function']['name'] + '\\n' + '```json' + '\\n' + tool['function']['ar" \
    "guments'] + '\\n' + '```' + '<｜tool▁call▁end｜>'}}{{'<｜tool▁calls▁end｜>" \
    "<｜end▁of▁sentence｜>'}}{%- endif %}{%- endfor %}{%- endif %}{%- if message['rol" \
    "e'] == 'assistant' and message['content'] is not none %}{%- if ns.is_tool %}{{'<｜too" \
    "l▁outputs▁end｜>' + message['content'] + '<｜end▁of▁sentence｜>'}}{%- set n" \
    "s.is_tool = false -%}{%- else %}{% set content = message['content'] %}{% if '</think>'" \
    " in content %}{% set content = content.split('</think>')[-1] %}{% endif %}{{'<｜Assis" \
    "tant｜>' + content + '<｜end▁of▁sentence｜>'}}{%- endif %}{%- endif %}{%- if me" \
    "ssage['role'] == 'tool' %}{%- set ns.is_tool = true -%}{%- if ns.is_output_first %}{{'" \
    "<｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>' + message['content'] + '<" \
    "｜tool▁output▁end｜>'}}{%- set ns.is_output_first = false %}{%- else %}{{'\\n<"   \
    "｜tool▁output▁begin｜>' + message['content'] + '<｜tool▁output▁end｜>'}}{%" \
    "- endif %}{%- endif %}{%- endfor -%}{% if ns.is_tool %}{{'<｜tool▁outputs▁end｜>" \
    "'}}{% endif %}{% if add_generation_prompt and not ns.is_tool %}{{'<｜Assistant｜>"

#define CHAT_DEEPSEEK    CHAT_DEEPSEEK_BODY "'}}{% endif %}"
#define CHAT_DEEPSEEK_R1 CHAT_DEEPSEEK_BODY "<think>\\n'}}{% endif %}"

/* Open one with these added tokens, whose ids are 256 and up. */
static inline struct tokenizer *chat_bytes_build(const char *template, const char *const *added,
                                                 const int *kinds, size_t n)
{
    static char letters[256][5];
    static struct str pieces[256 + CHAT_BYTES_MARKS];
    static int types[256 + CHAT_BYTES_MARKS];
    struct tokenizer *t;
    for (unsigned b = 0; b < 256; b++) {
        pieces[b] = (struct str){ letters[b], letter_of(letters[b], b) };
        types[b] = PIECE_NORMAL;
    }
    for (size_t i = 0; i < n; i++) {
        pieces[256 + i] = (struct str){ added[i], strlen(added[i]) };
        types[256 + i] = kinds[i];
    }
    struct vocabulary v = { .path = "bytes", .pieces = pieces, .types = types };
    v.count = 256 + n;
    v.template = (struct str){ template, template ? strlen(template) : 0 };
    CHECK(tokenizer_build(&t, &v, NULL) == OK);
    return t;
}

/* Open it with the first `marks` of these. */
static inline struct tokenizer *chat_bytes_open(const char *template, size_t marks)
{
    static const int kinds[CHAT_BYTES_MARKS] = { PIECE_CONTROL, PIECE_CONTROL, PIECE_USER,
                                                 PIECE_USER,    PIECE_CONTROL, PIECE_CONTROL,
                                                 PIECE_CONTROL, PIECE_CONTROL };
    return chat_bytes_build(template, chat_bytes_marks, kinds, marks);
}

#endif
