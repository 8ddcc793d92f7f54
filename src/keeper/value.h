/* SPDX-License-Identifier: Apache-2.0 */
/* value: what a source may give as a credential. */
#ifndef VETHGUARD_SRC_KEEPER_VALUE_H
#define VETHGUARD_SRC_KEEPER_VALUE_H

#include "vethguard/base/secret.h"

/* Bytes: the message with the value has to fit secret memory too. */
#define VALUE_MAX (SECRET_MAX - 1024)

/* Removes one trailing line end (LF or CRLF) from value, and writes spaces over the line ends in a
 * JSON object; its bytes must be writable. Returns NULL if the value can be used; otherwise why
 * not, as the end of a sentence that begins with the source and shows no byte of the value. */
const char *value_check(struct slice *value);

#endif
