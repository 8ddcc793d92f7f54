/* SPDX-License-Identifier: Apache-2.0 */
/* Reads lines of a file that may contain anything: a line beyond AUDIT_LINE_MAX is cut there and
 * its rest skipped. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/audit/audit.h"

int audit_reader_open(struct audit_reader *reader, const char *path)
{
	bool standard = strcmp(path, "-") == 0;
	int rc;

	memset(reader, 0, sizeof(*reader));
	reader->name = standard ? "standard input" : path;
	reader->line = malloc(AUDIT_LINE_MAX);
	if (!reader->line)
		return -ENOMEM;
	reader->file = standard ? stdin : fopen(path, "re");
	if (reader->file)
		return 0;
	rc = errno;
	free(reader->line);
	reader->line = NULL;
	return -rc;
}

int audit_reader_next(struct audit_reader *reader, struct slice *line)
{
	int c;

	reader->n = 0;
	reader->too_long = false;
	while ((c = getc_unlocked(reader->file)) != EOF && c != '\n') {
		if (reader->n < AUDIT_LINE_MAX)
			reader->line[reader->n++] = (char)c;
		else
			reader->too_long = true;
	}
	if (c == EOF && ferror(reader->file))
		return errno ? -errno : -EIO;
	if (c == EOF && reader->n == 0)
		return 0;
	reader->torn = c == EOF;
	reader->number++;
	*line = slice_of(reader->line, reader->n);
	return 1;
}

void audit_reader_close(struct audit_reader *reader)
{
	if (reader->file && reader->file != stdin)
		fclose(reader->file);
	free(reader->line);
	memset(reader, 0, sizeof(*reader));
}
