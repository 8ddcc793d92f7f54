/* SPDX-License-Identifier: Apache-2.0 */
/* boot_file: files of shared memory whose times are of clock_boot_ms(), so that a file of another
 * boot of the machine is not used. Each begins with struct boot_head. */
#ifndef VETHGUARD_SRC_IPC_BOOT_FILE_H
#define VETHGUARD_SRC_IPC_BOOT_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define BOOT_ID_BYTES 36

struct boot_head {
	uint32_t layout; /* of everything behind the head: changes with it */
	char boot_id[BOOT_ID_BYTES];
};

/* Makes a file (mode 0600) of that size, all zeros behind its head. Allocates no space for the
 * zeros. Returns the descriptor, -EEXIST or another -errno. */
int boot_file_create(int directory, const char *name, uint32_t layout, size_t size);
/* Returns 0; -EBADMSG: another size, layout or boot; or another -errno. */
int boot_file_check(int fd, off_t size, uint32_t layout, size_t wanted);

#endif
