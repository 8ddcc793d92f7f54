/* SPDX-License-Identifier: Apache-2.0 */
/* policy_new_quote: writes a text as a double-quoted YAML scalar that means exactly the text. */
#ifndef VETHGUARD_SRC_CLI_POLICY_NEW_QUOTE_H
#define VETHGUARD_SRC_CLI_POLICY_NEW_QUOTE_H

#include "cli/policy/new.h"

#define NEW_QUOTED_MAX (2 * NEW_WORD_MAX + 3)

/* text: printable ASCII, at most NEW_WORD_MAX bytes. Returns false if it has other bytes. */
bool new_quote(struct slice text, char out[NEW_QUOTED_MAX]);

#endif
