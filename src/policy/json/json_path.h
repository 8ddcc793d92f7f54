/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_path: names a value of a JSON text, as a JSON pointer does (RFC 6901): "/user/name", with
 * "~1" for a slash and "~0" for a tilde in a key, and "*" for each element of an array. And the
 * values that a condition compares it with, as an image keeps them.
 */
#ifndef VETHGUARD_SRC_POLICY_JSON_JSON_PATH_H
#define VETHGUARD_SRC_POLICY_JSON_JSON_PATH_H

#include "vethguard/policy/json.h"

#define JSON_PATH_KEYS_MAX 16 /* of one path */

/* The first byte of a value in an image says what follows. */
enum json_value_type {
	JSON_VALUE_TEXT = 's',   /* a pattern */
	JSON_VALUE_NUMBER = 'n', /* two doubles: from, to, both included */
	JSON_VALUE_WORD = 'w',   /* "true" or "false" */
	JSON_VALUE_ANY = 'a',    /* nothing */
	JSON_VALUE_PATH = 'p'    /* a pattern for paths of files: policy/decide/file_path.h */
};
#define JSON_VALUE_NUMBER_BYTES (1 + 2 * sizeof(double))

/* False for a text that is not a path: it does not begin with a slash, has an empty key, more than
 * JSON_PATH_KEYS_MAX keys, or a '~' that is not an escape. */
bool json_path_is_sound(struct slice path);
/* Takes the next key, as written, off the path. Returns false at the end. */
bool json_path_next(struct slice *path, struct slice *key);
/* True if name is the key of a path. */
bool json_path_key_is(struct slice name, struct slice key);
/* True if some reader takes name for the key: in letters of any case (also the two letters beyond
 * ASCII that fold to ASCII), with or without '_', '-', '.' and spaces. */
bool json_path_key_resembles(struct slice name, struct slice key);
/* The same for two keys of paths. */
bool json_path_keys_resemble(struct slice a, struct slice b);
/* Finds the member of an object that a path's key names: *out, or NULL if there is none. Returns
 * false if the object has another member that some reader takes for it. */
bool json_path_member(const struct json_tree *tree, const struct json_value *object,
        struct slice key, const struct json_value **out);
/* True for a text that a program would read as a number. */
bool json_looks_numeric(struct slice text);
/* False for a value of an image that has no type or another length. */
bool json_value_is_sound(struct slice value);

#endif
