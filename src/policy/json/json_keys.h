/* SPDX-License-Identifier: Apache-2.0 */
/* json_keys: finds a key that an object has twice. */
#ifndef VETHGUARD_SRC_POLICY_JSON_JSON_KEYS_H
#define VETHGUARD_SRC_POLICY_JSON_JSON_KEYS_H

#include "vethguard/policy/json.h"

/* Returns 0 if all keys of the object at index differ; -EEXIST; or -ENOMEM. */
int json_keys_differ(const struct json_tree *tree, uint32_t index);

#endif
