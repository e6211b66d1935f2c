/* pack.c - see pack.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/page/pack.h"

#include "base/alloc.h"
#include "report/figure/sheet_out.h"

#include <math.h>
#include <string.h>

void ry_pack_u16(ry_pack *p, uint16_t v)
{
    const char bytes[2] = {(char)(v & 255), (char)(v >> 8)};
    ry_put_bytes(&p->bytes, bytes, sizeof bytes);
}

void ry_pack_f32(ry_pack *p, float v)
{
    uint32_t bits = 0x7fc00000; /* NaN */
    if (!isnan(v)) memcpy(&bits, &v, sizeof bits);
    ry_pack_u16(p, (uint16_t)(bits & 0xffff));
    ry_pack_u16(p, (uint16_t)(bits >> 16));
}

void ry_pack_end(ry_pack *p)
{
    if (p->bytes.failed && !p->s->failed) {
        p->s->failed = 1;
        p->s->wanted = p->bytes.wanted;
    }
    ry_put_base64(p->s, p->bytes.bytes, p->bytes.size);
    ry_free(p->s->al, p->bytes.bytes);
    p->bytes = (ry_sink){.al = p->s->al};
}
