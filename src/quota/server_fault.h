/* SPDX-License-Identifier: Apache-2.0 */
/* server_fault: what an error of the quota server means, in words of our own. The server's words
 * are not shown: it knows the password. */
#ifndef VETHGUARD_SRC_QUOTA_SERVER_FAULT_H
#define VETHGUARD_SRC_QUOTA_SERVER_FAULT_H

#include "quota/server.h"

/* Returns a sentence for an error such as "LOADING Redis is loading ...". */
const char *server_fault_text(const char *error, char out[SERVER_WHY_MAX]);

#endif
