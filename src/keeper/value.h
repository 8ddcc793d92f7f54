/* SPDX-License-Identifier: Apache-2.0 */
/* value: what a source may give as a credential. */
#ifndef VETHGUARD_SRC_KEEPER_VALUE_H
#define VETHGUARD_SRC_KEEPER_VALUE_H

#include "vethguard/base/secret.h"

#define VALUE_MAX \
	(SECRET_MAX - 1024) /* bytes: the message that carries it has to fit secret memory too */

/* Takes one trailing line end (LF or CRLF) off value. NULL: it can be used; else why not, as the
 * end of a sentence that begins with the source and shows no byte of the value. */
const char *value_check(struct slice *value);

#endif
