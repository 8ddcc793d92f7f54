/* SPDX-License-Identifier: Apache-2.0 */
/* quota_start: what vethguard-quota needs in order to reach the server of the configuration. */
#ifndef VETHGUARD_SRC_SUPERVISOR_CONFIG_QUOTA_START_H
#define VETHGUARD_SRC_SUPERVISOR_CONFIG_QUOTA_START_H

#include "supervisor/config/settings.h"
#include "supervisor/os/memfd.h"
#include "vethguard/wire/message.h"

#define QUOTA_WHY_MAX (PATH_MAX + 256)

struct quota_start {
	struct message_quota_start message; /* borrows the configuration's texts */
	struct memory_bundle *trusted;      /* owned: a reference */
	int password;                       /* owned: the file; -1: none */
};

/* Opens the password's file, under the same rules as for a private key, and finds resolvers, hosts
 * and trusted CAs. Returns 0, or -errno with why. */
int quota_start_open(const struct config_quota *config, const char *config_path,
        struct memory_trusted *kept, struct quota_start *out, char why[QUOTA_WHY_MAX]);
void quota_start_close(struct quota_start *start);

#endif
