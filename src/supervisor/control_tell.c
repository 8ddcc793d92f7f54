/* SPDX-License-Identifier: Apache-2.0 */
/* A call of the control API on its way to the audit log. */
#include <pwd.h>

#include "supervisor/control.h"
#include "supervisor/supervisor.h"

void control_tell(struct supervisor *supervisor, const struct control_record *record)
{
	struct passwd *user = getpwuid(record->peer.uid);
	struct told_call call = {.operation = record->operation,
	        .method = record->method[0] ? record->method : NULL,
	        .target = record->target[0] ? record->target : NULL,
	        .user_id = record->peer.uid,
	        .process_id = (uint32_t)record->peer.pid,
	        .user = user ? user->pw_name : NULL,
	        .sandbox = record->sandbox[0] ? record->sandbox : NULL,
	        .status = (uint16_t)record->status,
	        .error = record->detail[0] ? record->detail : NULL};

	tell_api(supervisor,
	        record->sandbox_id ? supervisor_find(supervisor, record->sandbox_id) : NULL, &call);
}
