/* SPDX-License-Identifier: Apache-2.0 */
/* `vethguard credential list` and `show`. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/credential/credential.h"

static int get(const struct control_line *line, const char *name, struct control_answer *answer)
{
	char path[CONTROL_PATH_MAX];

	if (!control_path(path, name, "/credentials"))
		return CLI_USAGE;
	return control_call(line->socket, "GET", path, NULL, answer);
}

/* Asks about this sandbox and adds the answer to the list. */
static int add(const struct control_line *line, const char *name, json_t *answers)
{
	struct control_answer answer;
	int rc = get(line, name, &answer);

	if (rc)
		return rc;
	json_array_append(answers, answer.json);
	control_answer_free(&answer);
	return 0;
}

static int add_all(const struct control_line *line, json_t *answers)
{
	struct control_answer answer;
	const json_t *sandboxes;
	int status = control_call(line->socket, "GET", "/sandboxes", NULL, &answer), rc;

	if (status)
		return status;
	sandboxes = json_object_get(answer.json, "sandboxes");
	for (size_t i = 0; i < json_array_size(sandboxes); i++) {
		rc = add(line, control_text(json_array_get(sandboxes, i), "name"), answers);
		status = status ? status : rc;
	}
	control_answer_free(&answer);
	return status;
}

int credential_list_command(int argc, char **argv)
{
	static const struct control_usage u = {"vethguard credential list",
	        "[SANDBOX...] [OPTIONS]",
	        "Shows the credentials of sandboxes; without a name, of all. With --json: an "
	        "array\n"
	        "of the daemon's answers, one for each sandbox.\n",
	        "  vethguard credential list\n"
	        "  vethguard credential list agent-7 --json | jq '.[].credentials[].state'\n",
	        credential_specs};
	struct control_line line;
	int status = credential_line_read(&u, argv + 1, 0, SIZE_MAX, &line), rc;
	json_t *answers;

	(void)argc;
	if (status >= 0)
		return status;
	answers = json_array();
	status = line.name_count ? 0 : add_all(&line, answers);
	for (size_t i = 0; i < line.name_count; i++) {
		rc = add(&line, line.names[i], answers);
		status = status ? status : rc;
	}
	if (line.json)
		control_print_json(answers);
	else if (json_array_size(answers))
		credential_print_list(answers);
	json_decref(answers);
	return status;
}

static const json_t *find(const json_t *answer, const char *name)
{
	const json_t *list = json_object_get(answer, "credentials");

	for (size_t i = 0; i < json_array_size(list); i++)
		if (strcmp(control_text(json_array_get(list, i), "name"), name) == 0)
			return json_array_get(list, i);
	return NULL;
}

int credential_show_command(int argc, char **argv)
{
	static const struct control_usage u = {"vethguard credential show",
	        "SANDBOX CREDENTIAL [OPTIONS]",
	        "Shows one credential: where its value comes from and goes to, how old it is and\n"
	        "when it ends, how often it was used, what went wrong last. Never the value.\n",
	        "  vethguard credential show agent-7 github\n", credential_specs};
	struct control_answer answer;
	struct control_line line;
	const json_t *credential;
	char shown[256];
	int rc = credential_line_read(&u, argv + 1, 2, 2, &line);

	(void)argc;
	if (rc >= 0)
		return rc;
	rc = get(&line, line.names[0], &answer);
	if (rc)
		return rc;
	credential = find(answer.json, line.names[1]);
	if (!credential) {
		fprintf(stderr,
		        "vethguard: error: the policy has no credential \"%s\": 'vethguard "
		        "credential list' names them\n",
		        slice_escape(slice_from_string(line.names[1]), shown, sizeof(shown)));
		rc = CONTROL_REFUSED;
	} else if (line.json) {
		control_print_json(credential);
	} else {
		credential_print(control_text(answer.json, "name"), credential);
	}
	control_answer_free(&answer);
	return rc;
}
