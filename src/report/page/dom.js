// dom.js - helpers that the scripts of all pages use. SPDX-License-Identifier: Apache-2.0
'use strict';
const dom = {
  byId: (id) => document.getElementById(id),
  all: (where, selector) => [...where.querySelectorAll(selector)],
  make: (tag, { dataset, ...props } = {}, ...children) => {
    const e = Object.assign(document.createElement(tag), props);
    Object.assign(e.dataset, dataset);
    e.append(...children);
    return e;
  },
  makeSvg: (tag, attributes, ...children) => {
    const e = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
    e.append(...children);
    return e;
  },
};
