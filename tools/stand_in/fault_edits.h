/* fault_edits.h - the edits in the table of fault.c. Those of a json_t change an answer or an event
 * and leave one without ids as it is; those of a struct buf change its JSON text. All return false
 * if there is no memory. */
#ifndef TOOLS_STAND_IN_FAULT_EDITS_H
#define TOOLS_STAND_IN_FAULT_EDITS_H

#include <jansson.h>
#include <stdbool.h>

struct buf;
struct stand_in_case;

bool stand_in_fault_edit_wrong_id(json_t **reply, const struct stand_in_case *c);
bool stand_in_fault_edit_out_of_vocab(json_t **reply, const struct stand_in_case *c);
bool stand_in_fault_edit_negative_id(json_t **reply, const struct stand_in_case *c);
bool stand_in_fault_edit_real_id(json_t **reply, const struct stand_in_case *c);
bool stand_in_fault_edit_string_id(json_t **reply, const struct stand_in_case *c);
bool stand_in_fault_edit_huge_id(json_t **reply, const struct stand_in_case *c);
bool stand_in_fault_edit_no_ids(json_t **reply, const struct stand_in_case *c);
bool stand_in_fault_edit_null_ids(json_t **reply, const struct stand_in_case *c);
bool stand_in_fault_edit_empty_ids(json_t **reply, const struct stand_in_case *c);
bool stand_in_fault_edit_no_eos(json_t **reply, const struct stand_in_case *c);
bool stand_in_fault_edit_length(json_t **reply, const struct stand_in_case *c);
bool stand_in_fault_edit_prompt(json_t **reply, const struct stand_in_case *c);
bool stand_in_fault_edit_too_many(json_t **reply, const struct stand_in_case *c);
bool stand_in_fault_edit_count(json_t **reply, const struct stand_in_case *c);
bool stand_in_fault_edit_short_prompt(json_t **reply, const struct stand_in_case *c);
bool stand_in_fault_edit_abort(json_t **reply, const struct stand_in_case *c);
bool stand_in_fault_edit_list(json_t **reply, const struct stand_in_case *c);
bool stand_in_fault_edit_control(json_t **reply, const struct stand_in_case *c);
bool stand_in_fault_edit_model(json_t **reply, const struct stand_in_case *c);

bool stand_in_fault_edit_bad_json(struct buf *text);
bool stand_in_fault_edit_nan(struct buf *text);
bool stand_in_fault_edit_infinity(struct buf *text);
bool stand_in_fault_edit_bad_utf8(struct buf *text);
bool stand_in_fault_edit_nul(struct buf *text);
bool stand_in_fault_edit_bom(struct buf *text);
bool stand_in_fault_edit_trailing(struct buf *text);
bool stand_in_fault_edit_deep(struct buf *text);
bool stand_in_fault_edit_twice(struct buf *text);
bool stand_in_fault_edit_gzip(struct buf *text);
bool stand_in_fault_edit_bomb(struct buf *text);

#endif
