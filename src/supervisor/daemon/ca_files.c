/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/daemon/ca_files.h"

#include <unistd.h>

#include "vethguard/wire/message.h"
#include "supervisor/os/operator_file.h"

static int open_one(struct ca_files *files, const char *key, const char *path, bool secret,
        char why[CA_FILES_WHY_MAX])
{
	int fd = operator_file_open(key, path, secret, why, CA_FILES_WHY_MAX);

	if (fd < 0)
		return fd;
	files->fds[files->count++] = fd;
	return 0;
}

int ca_files_open(
        const struct config_ca *config, struct ca_files *files, char why[CA_FILES_WHY_MAX])
{
	const struct {
		const char *key, *path;
		uint8_t bit;
	} all[CA_FILES_MAX] = {{"ca.root", config->root, MESSAGE_CA_ROOT_FILE},
	        {"ca.certificate", config->certificate, MESSAGE_CA_CERTIFICATE_FILE},
	        {"ca.key", config->key, MESSAGE_CA_KEY_FILE}};
	int rc = 0;

	*files = (struct ca_files){0};
	for (size_t i = 0; i < CA_FILES_MAX; i++)
		if (all[i].path[0])
			files->configured |= all[i].bit;
	if (config->token.uri[0])
		files->configured |= MESSAGE_CA_TOKEN_KEY;
	for (size_t i = 0; i < CA_FILES_MAX && rc == 0; i++)
		if (all[i].path[0])
			rc = open_one(files, all[i].key, all[i].path,
			        all[i].bit == MESSAGE_CA_KEY_FILE, why);
	if (rc)
		ca_files_close(files);
	return rc;
}

int ca_files_open_pin(const char *path, char why[CA_FILES_WHY_MAX])
{
	return operator_file_open("ca.token.pin", path, true, why, CA_FILES_WHY_MAX);
}

void ca_files_close(struct ca_files *files)
{
	while (files->count)
		close(files->fds[--files->count]);
}
