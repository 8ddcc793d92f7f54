/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report of a child that read a policy's files with somebody's rights (config/files.c), whole
 * or cut off anywhere: whoever kills the child says where it ends. What is handed out lies
 * within it and equals what stands there.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "supervisor/config/private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

/* If the report has a file of this path, its text is one run of the input's bytes. */
static void look_for(
        const struct settings_files *files, const char *path, const uint8_t *data, size_t size)
{
	struct policy_file_facts facts;
	char *text = NULL;
	size_t n = 0;

	if (settings_files_get(files, path, &text, &n, &facts) != 0)
		return;
	require(text && text[n] == 0 && n <= size);
	require(n == 0 || memmem(data, size, text, n) != NULL);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int report = memfd_create("report", MFD_CLOEXEC);
	struct settings_files *files;
	const char *named;

	require(report >= 0 && write(report, data, size) == (ssize_t)size);
	files = settings_files_open(report);
	close(report);
	if (!files)
		return 0;
	look_for(files, "/p", data, size);
	look_for(files, "/p/include", data, size);
	named = settings_files_waits_for(files);
	if (named)
		look_for(files, named, data, size);
	named = settings_files_beyond(files);
	if (named)
		look_for(files, named, data, size);
	settings_files_free(files);
	return 0;
}
