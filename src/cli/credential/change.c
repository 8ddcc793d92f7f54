/* SPDX-License-Identifier: Apache-2.0 */
/* `vethguard credential check`, `rotate` and `revoke`. */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/credential/credential.h"

/* Makes the call for the sandbox and the credential of the command line. Returns the exit status.
 */
static int change(const struct control_usage *u, char **argv, const char *tail,
        void (*print)(const json_t *answer))
{
	char path[CONTROL_PATH_MAX];
	struct control_line line;
	int rc = credential_line_read(u, argv, 2, 2, &line);
	json_t *body;

	if (rc >= 0)
		return rc;
	if (!control_path(path, line.names[0], tail))
		return CLI_USAGE;
	body = json_pack("{s:s}", "credential", line.names[1]);
	if (!body) {
		fputs("vethguard: error: the credential's name is not UTF-8\n", stderr);
		return CLI_USAGE;
	}
	rc = control_call_and_print(&line, "POST", path, body, print);
	json_decref(body);
	return rc;
}

static void print_checked(const json_t *answer)
{
	const json_t *credential = json_object_get(answer, "credential");
	const json_t *fetched = json_object_get(answer, "fetched");
	const json_t *ttl = json_object_get(fetched, "ttl_s"), *to;

	printf("%s: its source gives a value", control_text(credential, "name"));
	if (json_is_integer(ttl))
		printf(", good for %" JSON_INTEGER_FORMAT " s", json_integer_value(ttl));
	printf("\n");
	credential_put("source", control_text(credential, "source"));
	credential_put("fingerprint", control_text(fetched, "fingerprint"));
	credential_put("in use", json_is_true(json_object_get(fetched, "in_use"))
	                                 ? "this value"
	                                 : "another value: 'vethguard credential rotate' puts "
	                                   "a fresh one in its place");
	credential_put("sent as", control_text(credential, "sent_as"));
	to = json_object_get(credential, "to");
	for (size_t i = 0; i < json_array_size(to); i++)
		credential_put(i ? "" : "to", json_string_value(json_array_get(to, i)));
	if (json_array_size(to) == 0)
		credential_put("to", "nowhere: no rule names it");
}

int credential_check_command(int argc, char **argv)
{
	static const struct control_usage u = {"vethguard credential check",
	        "SANDBOX CREDENTIAL [OPTIONS]",
	        "Asks the source once, now, and says what would be sent where. What is in use "
	        "stays\n"
	        "in use; where nothing is in use, the value is kept for the next request.\n",
	        "  vethguard credential check agent-7 github\n", credential_specs};

	(void)argc;
	return change(&u, argv + 1, "/credentials/check", print_checked);
}

static void print_rotated(const json_t *answer)
{
	const json_t *credential = json_object_get(answer, "credential");

	printf("%s: rotated: every request from now on gets the fresh value\n",
	        control_text(credential, "name"));
	credential_put(
	        "fingerprint", control_text(json_object_get(answer, "fetched"), "fingerprint"));
	credential_put("ends", control_text(credential, "ends"));
}

int credential_rotate_command(int argc, char **argv)
{
	static const struct control_usage u = {"vethguard credential rotate",
	        "SANDBOX CREDENTIAL [OPTIONS]",
	        "Gets a fresh value from the source and uses it for every request from then on. "
	        "No\n"
	        "connection ends. If the source fails, the value before stays in use. A "
	        "credential\n"
	        "that was revoked is in use again.\n",
	        "  vethguard credential rotate agent-7 github\n", credential_specs};

	(void)argc;
	return change(&u, argv + 1, "/credentials/rotate", print_rotated);
}

static void print_revoked(const json_t *answer)
{
	const json_int_t ended = json_integer_value(json_object_get(answer, "ended"));

	printf("%s: revoked: no request gets it; %" JSON_INTEGER_FORMAT " that had it %s ended\n",
	        control_text(json_object_get(answer, "credential"), "name"), ended,
	        ended == 1 ? "was" : "were");
}

int credential_revoke_command(int argc, char **argv)
{
	static const struct control_usage u = {"vethguard credential revoke",
	        "SANDBOX CREDENTIAL [OPTIONS]",
	        "Stops the use of a credential at once: its value is wiped, requests that have it "
	        "are\n"
	        "ended, also those that stream, and requests that need it are refused, until\n"
	        "'vethguard credential rotate' or 'vethguard reload SANDBOX'. The service itself "
	        "is\n"
	        "told only if the value has a lease, which ends.\n",
	        "  vethguard credential revoke agent-7 github\n", credential_specs};

	(void)argc;
	return change(&u, argv + 1, "/credentials/revoke", print_revoked);
}
