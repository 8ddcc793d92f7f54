/* SPDX-License-Identifier: Apache-2.0 */
/* attaching: a request to attach a sandbox, on its way through attach.c, check.c and locate.c. Each
 * step is true where the next may follow, and says else why not. */
#ifndef VETHGUARD_SRC_SUPERVISOR_ATTACH_TRANSACTION_H
#define VETHGUARD_SRC_SUPERVISOR_ATTACH_TRANSACTION_H

#include "supervisor/attach/attachment.h"

/* A request on its way. What it holds is closed where it goes no further. */
struct attach_transaction {
	struct attachments *all;
	const struct attach_request *request;
	struct attachment *attachment;
	int netns;
	char interface[IFNAMSIZ]; /* its own name: attach_transaction_check_request() */
	struct gate_divert divert;
	enum attach_status status;
	char text[SANDBOX_FAILURE_MAX];
	char *diagnostics; /* owned */
	const struct settings_files *files;
	bool remote; /* a child has to read the policy first */
};

/* False, with a status and a sentence for who asked. */
bool attach_transaction_refuse(struct attach_transaction *t, enum attach_status status,
        const char *format, ...) __attribute__((format(printf, 3, 4)));

/* check.c: whether there may be such a sandbox at all; whether there is room for this one, and
 * nobody has its name or interface. */
bool attach_transaction_check_request(struct attach_transaction *t);
bool attach_transaction_check_room(struct attach_transaction *t);
/* locate.c: where it is, from now on known to be this attachment's. t->netns, or t->divert and its
 * place, is filled in. */
bool attach_transaction_find_target(struct attach_transaction *t);

#endif
