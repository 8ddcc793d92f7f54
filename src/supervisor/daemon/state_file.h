/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state_file: what the daemon has to know of a sandbox to find it again after its own death: one
 * JSON file for each, sandboxes/NAME.json in the state directory. A file is written whole beside
 * the old one and renamed, so that a reader finds one or the other. It is read strictly: an unknown
 * key, a value out of bounds or a file that somebody else could have written is an error, and that
 * sandbox stays cut off.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_DAEMON_STATE_FILE_H
#define VETHGUARD_SRC_SUPERVISOR_DAEMON_STATE_FILE_H

#include "supervisor/attach/record.h"
#include "supervisor/gate/gate.h"

#define STATE_FILE_MAX (256u << 10) /* bytes; labels and variables at their limits fit */
#define STATE_ERROR_MAX 512
#define STATE_SUFFIX ".json"
/* Suffix while being written: ignored if left behind by a killed daemon. */
#define STATE_FRESH_SUFFIX ".new"
#define STATE_VERSION 1

/* Writes the record and the gate's shape to the directory dir of these files. On the disk when it
 * returns. Returns 0 or -errno. */
int state_save(int dir, const struct attach_record *record, const struct gate *gate);
/* Reads a file. gate: as gate_init() left it; its shape is filled in. Returns 0, or -EINVAL or
 * -errno with one sentence in error; *record is empty then. */
int state_load(int dir, const char *file, struct attach_record *record, struct gate *gate,
        char error[STATE_ERROR_MAX]);
bool state_exists(int dir, const char *name);
/* Returns 0 or -errno; a missing file is no error. */
int state_remove(int dir, const char *name);

#endif
