/* SPDX-License-Identifier: Apache-2.0 */
/* option_wrong: what a command says of an option whose value it does not take. */
#ifndef VETHGUARD_SRC_CLI_OPTION_WRONG_H
#define VETHGUARD_SRC_CLI_OPTION_WRONG_H

#include <stdbool.h>

/* Prints on stderr that --option value breaks the rule. Returns false, for the caller to return. */
bool option_wrong(const char *option, const char *value, const char *rule);
/* Returns false after such a message if the value is not UTF-8, as all text of the control API is.
 */
bool option_is_utf8(const char *option, const char *value);

#endif
