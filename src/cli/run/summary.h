/* SPDX-License-Identifier: Apache-2.0 */
/* summary: prints the few lines at the end of a run. */
#ifndef VETHGUARD_SRC_CLI_RUN_SUMMARY_H
#define VETHGUARD_SRC_CLI_RUN_SUMMARY_H

#include <stdio.h>

#include "vethguard/wire/message.h"

/* audit_path: the log's path, or "". */
void summary_print(
        const struct message_summary *s, const char *sandbox, const char *audit_path, FILE *out);

#endif
