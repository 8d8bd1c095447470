// Texts of attackers, for property tests of pages: they would like to be elements, attributes, or somebody else's words.
import fc from 'fast-check'
import { anyText } from '../../support/any-text.ts'

const FRAGMENTS = [
  ...'"\'`<>&/=;,* \n\0\u202e\u2066\u200b\ufeff\u001b\u0301“”',
  '\ud800',
  ...'-- <!-- ]]> </title> </style> <script> autofocus &lt; &#60; javascript: data:text/html, //x https:// %3c Allow'.split(
    ' ',
  ),
  '<img src=x onerror=alert(1)>',
  '" onfocus="',
]

/** Texts that try to be more than texts, and any others. */
export const hostile = fc.oneof(
  anyText(200),
  fc.string({ maxLength: 200 }),
  fc.array(fc.constantFrom(...FRAGMENTS), { maxLength: 12 }).map(parts => parts.join('')),
)
/** As URLs, too. */
export const address = fc.oneof(
  hostile,
  hostile.map(text => `https://a.example/${text}`),
  hostile.map(text => `cursor://${text}`),
)
