/* SPDX-License-Identifier: Apache-2.0 */
/* members: reads the members of a JSON object by a table. */
#ifndef VETHGUARD_SRC_SUPERVISOR_CONTROL_MEMBERS_H
#define VETHGUARD_SRC_SUPERVISOR_CONTROL_MEMBERS_H

#include <jansson.h>

#include "supervisor/control/body.h"

#define MEMBER_WORD_MAX 96 /* bytes that are shown of a wrong word */

enum member_type { MEMBER_STRING, MEMBER_INTEGER, MEMBER_BOOLEAN, MEMBER_OBJECT, MEMBER_ARRAY };

struct member {
	const char *name;
	enum member_type type;
	const json_t *value; /* filled in; NULL: missing */
};

/* Writes one sentence into fault. Returns false. */
__attribute__((format(printf, 2, 3))) bool member_fault(char *fault, const char *format, ...);
/* Fills in the values. where: what precedes a member's name in messages. Like the functions below,
 * returns false with fault filled in; a missing member is no fault. */
bool members_read(
        const json_t *body, struct member *members, size_t count, const char *where, char *fault);
/* Returns the text, or NULL if the member is missing. */
const char *member_text(const struct member *member);
bool member_number(
        const struct member *member, uint64_t min, uint64_t max, uint64_t *out, char *fault);
bool member_pairs(const struct member *member, struct attach_pair *pairs, size_t max,
        struct attach_pairs *out, char *fault);
bool member_is_absolute(const char *member, const char *path, char *fault);
/* The same for the member "policy", which may also name a file of a bundle ("bundle:NAME/FILE"). */
bool member_is_policy(const char *path, char *fault);

#endif
