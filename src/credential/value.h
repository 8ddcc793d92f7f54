/* SPDX-License-Identifier: Apache-2.0 */
/* value: makes struct credential_value. */
#ifndef VETHGUARD_SRC_CREDENTIAL_VALUE_H
#define VETHGUARD_SRC_CREDENTIAL_VALUE_H

#include "vethguard/credential/store.h"

/* Renders bytes and compiles their mask, for the credential with that index. Returns one reference
 * for the caller, or NULL with *error set (static). */
struct credential_value *value_new(
        const struct policy *policy, uint32_t index, struct slice bytes, const char **error);
/* docker-registry: makes the same value with another jar. Returns one reference for the caller, or
 * NULL if there is no memory. */
struct credential_value *value_with_jar(const struct credential_value *value, struct slice jar);

#endif
