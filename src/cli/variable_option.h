/* SPDX-License-Identifier: Apache-2.0 */
/* variable_option: the value of --var, for every command that loads a policy. */
#ifndef VETHGUARD_SRC_CLI_VARIABLE_OPTION_H
#define VETHGUARD_SRC_CLI_VARIABLE_OPTION_H

#include "vethguard/policy/load.h"

/* Adds "NAME=VALUE" (borrowed) to variables, which has room for POLICY_VARIABLES_MAX. Returns false
 * after a message on stderr. */
bool variable_take(const char *text, struct policy_variable *variables, size_t *count);

#endif
