/* SPDX-License-Identifier: Apache-2.0 */
/* What the policy commands share besides options: loading a policy with its notes, JSON on stdout.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/policy/policy.h"

static void set_floor(const struct policy_options *with, struct policy_load_options *out)
{
	static char absolute[2 * PATH_MAX];
	char directory[PATH_MAX] = "";

	out->floor = POLICY_FLOOR_PATH;
	if (!with->floor)
		return;
	out->floor_required = true;
	out->floor = strcmp(with->floor, POLICY_FLOOR_NONE) == 0 ? NULL : with->floor;
	if (!out->floor || with->floor[0] == '/' || !getcwd(directory, sizeof(directory)))
		return;
	snprintf(absolute, sizeof(absolute), "%s/%s", directory, with->floor);
	out->floor = absolute;
}

int policy_load_file(const char *path, const struct policy_options *with, struct policy_loaded *out,
        struct diag_list *diags)
{
	struct policy_file_facts facts = {0};
	struct policy_reader reader =
	        policy_reader_watchful_files(policy_default_preset_dir(), &facts);
	struct diag_list notes = {.count = 0};
	struct policy_load_options options = {.variables = with->variables,
	        .variable_count = with->variable_count,
	        .notes = with->notes ? with->notes : &notes};
	size_t size;
	int rc;

	if (with->notes) {
		options.thorough = true;
		options.each_source = policy_note_source;
		options.each_source_context = with->notes;
	}
	if (with->hosts) {
		options.each_host = resolve_add;
		options.each_host_context = with->hosts;
	}
	set_floor(with, &options);
	memset(out, 0, sizeof(*out));
	rc = policy_load(&reader, path, &options, &out->image, &size, diags);
	if (rc == 0)
		rc = policy_open(&out->policy, out->image, size);
	if (rc != 0 && diags->count == 0)
		diag_add(diags, path, 0, 0, "cannot load the policy: %s", strerror(-rc));
	if (!with->quiet)
		policy_print_notes(&notes);
	return rc;
}

void policy_print_notes(const struct diag_list *notes)
{
	for (size_t i = 0; i < notes->count; i++) {
		const struct diag *note = &notes->items[i];

		if (note->line)
			fprintf(stderr, "%s:%u:%u: note: %s\n", note->file, note->line,
			        note->column, note->message);
		else
			fprintf(stderr, "%s: note: %s\n", note->file, note->message);
	}
	if (notes->dropped)
		fprintf(stderr, "%zu more notes are not shown\n", notes->dropped);
}

void policy_unload(struct policy_loaded *loaded)
{
	free(loaded->image);
	loaded->image = NULL;
}

void policy_diags_json(struct json *j, const char *key, const struct diag_list *diags)
{
	json_array(j, key);
	for (size_t i = 0; i < diags->count; i++) {
		const struct diag *d = &diags->items[i];

		json_object(j, NULL);
		json_literal(j, "file", d->file);
		json_uint(j, "line", d->line);
		json_uint(j, "column", d->column);
		json_literal(j, "message", d->message);
		json_end_object(j);
	}
	json_end_array(j);
}

int policy_print_json(struct json *j, struct buf *buf, int status)
{
	struct slice text = buf_slice(buf);

	if (j->failed || text.n == 0) {
		fputs("vethguard: error: the answer is too long for JSON\n", stderr);
		status = POLICY_EXIT_BAD;
	} else if (fwrite(text.p, 1, text.n, stdout) != text.n || fputc('\n', stdout) == EOF ||
	           fflush(stdout) == EOF) {
		status = POLICY_EXIT_BAD;
	}
	buf_fini(buf);
	return status;
}
