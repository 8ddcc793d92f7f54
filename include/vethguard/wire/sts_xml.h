/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sts_xml: reads answers of AWS's Security Token Service (AssumeRole and the like) in XML, and finds the keys in them.
 * Only the XML declaration, elements, text, the five named entities and the attribute xmlns are read. Everything else
 * that XML has is refused: a document type, other entities, comments, CDATA, instructions, other attributes. Pure.
 */
#ifndef VETHGUARD_WIRE_STS_XML_H
#define VETHGUARD_WIRE_STS_XML_H

#include "vethguard/base/slice.h"

#define STS_XML_DEPTH_MAX 16     /* elements within each other */
#define STS_XML_ELEMENTS_MAX 512 /* in one answer */

/* The parts of the keys; each slice borrows the text. */
enum sts_key { STS_ID, STS_SECRET, STS_TOKEN, STS_KEY_COUNT };
struct sts_xml {
	bool found; /* the answer has keys */
	struct slice keys[STS_KEY_COUNT];
};

/* Reads a whole answer, in UTF-8. It has all parts of the keys or none. They have to be in one element Credentials,
 * each once and without entities. Returns NULL, or what is wrong (static). */
const char *sts_xml_read(struct slice text, struct sts_xml *out);

#endif
