/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at the files of credentials: whether one can serve, and whether one that `vethguard run`
 * has covered was replaced. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "supervisor/os/local_file.h"
#include "supervisor/config/sources.h"

void source_name_fault(
        const struct sources *s, uint32_t index, const char *error, char text[SOURCE_FAULT_MAX])
{
	struct policy_credential c;
	char name[POLICY_NAME_MAX + 1];

	policy_credential(s->policy, index, &c);
	snprintf(text, SOURCE_FAULT_MAX, "credential \"%s\": %s",
	        slice_escape(c.name, name, sizeof(name)), error);
}

int source_open_local(const struct sources *s, struct slice name, char path[SOURCE_PATH_MAX],
        char error[SOURCE_ERROR_MAX])
{
	if (name.n >= SOURCE_PATH_MAX) {
		snprintf(error, SOURCE_ERROR_MAX, "the path is too long");
		return -1;
	}
	memcpy(path, name.p, name.n);
	path[name.n] = 0;
	return source_file_open(&s->identity, path, false, error);
}

/* Closes fd. The value of such a file is not refused, unlike one that others can write. */
static bool is_for_everybody(int fd, const char *path, char error[SOURCE_ERROR_MAX])
{
	char shown[256];
	struct stat st;
	bool is = fstat(fd, &st) == 0 && (st.st_mode & S_IROTH);

	close(fd);
	if (is)
		snprintf(error, SOURCE_ERROR_MAX,
		        "%s can be read by everybody: chmod o-r fixes that",
		        slice_escape(slice_from_string(path), shown, sizeof(shown)));
	return is;
}

void sources_examine(
        const struct sources *s, void (*tell)(void *context, const char *fault), void *context)
{
	for (uint32_t i = 0; s->policy && i < policy_credential_count(s->policy); i++) {
		char path[SOURCE_PATH_MAX], error[SOURCE_ERROR_MAX], text[SOURCE_FAULT_MAX];
		struct policy_credential c;
		struct slice file;
		int fd;

		policy_credential(s->policy, i, &c);
		for (size_t k = 0; policy_credential_file(&c, k, &file); k++) {
			fd = source_open_local(s, file, path, error);
			if (fd == LOCAL_FILE_UNKNOWN ||
			        (fd >= 0 && !is_for_everybody(fd, path, error)))
				continue;
			source_name_fault(s, i, error, text);
			tell(context, text);
		}
	}
}

static void remember_covered(
        struct sources *s, const struct policy_credential *c, uint32_t index, size_t k)
{
	char path[SOURCE_PATH_MAX], error[SOURCE_ERROR_MAX];
	struct slice file;
	struct stat st;
	int fd = policy_credential_file(c, k, &file) ? source_open_local(s, file, path, error) : -1;

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0)
		s->covered[index][k] = (struct source_identity){st.st_dev, st.st_ino};
	close(fd);
}

void sources_remember_covered(struct sources *s)
{
	free(s->covered);
	s->covered = calloc(POLICY_CREDENTIALS_MAX, sizeof(*s->covered));
	for (uint32_t i = 0; s->covered && s->policy && i < policy_credential_count(s->policy);
	        i++) {
		struct policy_credential c;

		policy_credential(s->policy, i, &c);
		for (size_t k = 0; k < SOURCE_FILES_MAX; k++)
			remember_covered(s, &c, i, k);
	}
}

void source_look_whether_covered(
        struct sources *s, uint32_t index, size_t k, int fd, const char *path)
{
	struct source_identity *covered = s->covered ? &s->covered[index][k] : NULL;
	char shown[256], error[SOURCE_ERROR_MAX], text[SOURCE_FAULT_MAX];
	struct stat st;

	if (!covered || fstat(fd, &st) < 0 ||
	        (st.st_dev == covered->device && st.st_ino == covered->inode))
		return;
	snprintf(error, sizeof(error),
	        "%s was replaced after the run started, so the sandbox can see the new file: write "
	        "into the old file instead of replacing it",
	        slice_escape(slice_from_string(path), shown, sizeof(shown)));
	source_name_fault(s, index, error, text);
	log_warn("%s", text);
	*covered = (struct source_identity){st.st_dev, st.st_ino}; /* told once */
}
