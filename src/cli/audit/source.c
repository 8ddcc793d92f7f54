/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the log if no FILE was named: the daemon knows the path of its own. */
#include <errno.h>
#include <string.h>

#include "cli/audit/audit.h"
#include "cli/commands.h"
#include "cli/attach/control_client.h"

bool audit_is_fingerprint(const char *text)
{
	return strlen(text) == SEAL_HASH_DIGITS &&
	       strspn(text, "0123456789abcdef") == SEAL_HASH_DIGITS;
}

/* Takes the daemon's answer only if it is an absolute path. */
static bool take(struct audit_source *source, const json_t *json)
{
	const char *path = json_string_value(json_object_get(json, "path"));
	const char *fingerprint = json_string_value(json_object_get(json, "fingerprint"));

	if (!path || path[0] != '/' || strlen(path) >= sizeof(source->path))
		return false;
	memcpy(source->path, path, strlen(path) + 1);
	if (fingerprint && audit_is_fingerprint(fingerprint))
		memcpy(source->fingerprint, fingerprint, strlen(fingerprint) + 1);
	return true;
}

int audit_source_ask(struct audit_source *source, const char *socket, const char *command)
{
	struct control_answer answer;
	int rc = control_call(
	        socket ? socket : CONTROL_SOCKET_DEFAULT, "GET", "/audit", NULL, &answer);

	*source = (struct audit_source){.path = ""};
	if (rc == 0 && !take(source, answer.json)) {
		control_answer_free(&answer);
		fputs("vethguard: error: the daemon does not say where its audit log is\n", stderr);
		rc = CONTROL_REFUSED;
	}
	if (rc == 0) {
		control_answer_free(&answer);
		return 0;
	}
	fprintf(stderr, "Without FILE the daemon's own log is meant. Another one: '%s FILE'.\n",
	        command);
	return CONTROL_UNREACHABLE;
}

void audit_source_unreadable(const char *path, int error, bool asked)
{
	fprintf(stderr, "vethguard: error: cannot read %s: %s\n", path, strerror(error));
	if (asked && error == EACCES)
		fputs("It is the daemon's audit log, which root may read: use sudo.\n", stderr);
}
