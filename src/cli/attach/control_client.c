/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the control API, and what a command prints where one fails; see attach/control_client.h.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/attach/control_client.h"
#include "vethguard/wire/control_http.h"

#define SHOWN_MAX 1024

static int unreachable(const char *path, int error)
{
	char shown[256];

	slice_escape(slice_from_string(path), shown, sizeof(shown));
	if (error == ENOENT || error == ECONNREFUSED)
		fprintf(stderr,
		        "vethguard: error: the daemon does not run: nothing listens on %s\n"
		        "Start it with 'systemctl start vethguardd', or name its socket with "
		        "--socket.\n",
		        shown);
	else if (error == EACCES || error == EPERM)
		fprintf(stderr,
		        "vethguard: error: you may not use %s\n"
		        "Root may, and members of the group vethguard: 'sudo usermod -aG "
		        "vethguard USER', then log in anew.\n",
		        shown);
	else
		fprintf(stderr, "vethguard: error: cannot speak to the daemon on %s: %s\n", shown,
		        error == EAGAIN ? "it does not answer" : strerror(error));
	return CONTROL_UNREACHABLE;
}

/* Prints the problem document as lines: its detail and each diagnostic. */
static int refused(const struct control_answer *answer)
{
	const json_t *lines = json_object_get(answer->json, "diagnostics"), *line;
	const char *detail = json_string_value(json_object_get(answer->json, "detail"));
	char shown[SHOWN_MAX];
	size_t i;

	if (!detail)
		detail = control_status_name(answer->status);
	slice_escape_controls(slice_from_string(detail), shown, sizeof(shown));
	fprintf(stderr, "vethguard: error: %s\n", shown);
	for (i = 0; i < json_array_size(lines); i++) {
		line = json_array_get(lines, i);
		if (!json_is_string(line))
			continue;
		slice_escape_controls(
		        slice_from_string(json_string_value(line)), shown, sizeof(shown));
		fprintf(stderr, "%s\n", shown);
	}
	if (answer->status == 404)
		fprintf(stderr, "'vethguard list' shows what there is.\n");
	return answer->status == 403 ? CONTROL_UNREACHABLE : CONTROL_REFUSED;
}

int control_call(const char *socket_path, const char *method, const char *path, const json_t *body,
        struct control_answer *answer)
{
	return control_call_or(socket_path, method, path, body, 0, answer);
}

int control_call_or(const char *socket_path, const char *method, const char *path,
        const json_t *body, unsigned other_status, struct control_answer *answer)
{
	int rc = control_client_call(socket_path, method, path, body, answer);

	if (rc < 0)
		return unreachable(socket_path, -rc);
	if (control_answer_is_good(answer) || answer->status == other_status)
		return 0;
	rc = refused(answer);
	control_answer_free(answer);
	return rc;
}
