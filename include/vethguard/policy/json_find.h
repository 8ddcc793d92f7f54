/* SPDX-License-Identifier: Apache-2.0 */
/* json_find: finds single values in a text that was read (json.h). */
#ifndef VETHGUARD_POLICY_JSON_FIND_H
#define VETHGUARD_POLICY_JSON_FIND_H

#include <stdint.h>

#include "vethguard/policy/json.h"

/* The member of the object with this index that has this key; NULL: there is none, or the value is no object. */
const struct json_value *json_tree_member(
        const struct json_tree *tree, const struct json_value *object, struct slice key);
/* The value that name means: a member of the outermost object; or, if name begins with a slash, a JSON pointer (RFC
 * 6901) without indexes of arrays. NULL: there is none. */
const struct json_value *json_tree_find(const struct json_tree *tree, struct slice name);
/* False for a name that is no pointer although it begins with a slash: no value has it. */
bool json_tree_name_is_sound(struct slice name);
/* True for a string. */
bool json_tree_string_of(const struct json_tree *tree, const struct json_value *value, struct slice *out);
/* The string that this member has. False: there is none, or it is something else. */
bool json_tree_string(const struct json_tree *tree, struct slice name, struct slice *out);
/* A whole number of at most 15 digits, not below zero. */
bool json_tree_whole(const struct json_tree *tree, const struct json_value *value, int64_t *out);
/* True if the value is this string, or an array of strings with this one among them. An array with anything else in it
 * has none. A '*' at the end of text (with_star) stands for anything. */
bool json_tree_has(const struct json_tree *tree, const struct json_value *value, struct slice text, bool with_star);

#endif
