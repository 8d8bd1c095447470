// The JSON Schema of an app, matching the types in define-app.ts.

import { icon } from '../../core/auth.ts'
import { closed, flag, list, text, words } from '../../core/internal.ts'

const PORT = '(?::(?:[1-9]\\d{0,3}|[1-5]\\d{4}|6[0-4]\\d{3}|65[0-4]\\d{2}|655[0-2]\\d|6553[0-5]))?'
const LABEL = '[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?'
/** Excludes link-local addresses, where clouds serve instance credentials. */
const NOT_LINK_LOCAL = '(?!169\\.254\\.)'

/**
 * Origins in a content security policy: no path, and no characters that end the directive. A wildcard needs two labels, so
 * `*.com` is refused; suffixes such as `co.uk` are not recognised.
 */
const origins = (description: string) =>
  list(
    {
      type: 'string',
      pattern: `^(?:https?|wss?)://${NOT_LINK_LOCAL}(?:\\*\\.(?=[^.:]+\\.))?${LABEL}(?:\\.${LABEL})*${PORT}$`,
      patternErrorMessage:
        'an origin, such as https://api.acme.example or https://*.acme.example (not all of a top-level name)',
    },
    description,
  )
const empty = closed({})

/** The JSON Schema of the tool key `app`. */
export const APP_SCHEMA = closed(
  {
    name: text('Name, unique on a route.', {
      pattern: '^[a-z0-9][a-z0-9._-]{0,63}$',
      patternErrorMessage: 'lower-case letters, digits and . _ -, at most 64',
    }),
    title: words('Name for people.'),
    description: words('Description of the page.'),
    icons: list(icon, 'Icons for clients: { src, mimeType, sizes, theme }.'),
    html: text('Its page, or the file that has it.'),
    module: text('The script that its page is bundled of.'),
    csp: closed({
      connectDomains: origins('Origins that the page can connect to.'),
      resourceDomains: origins('Origins of scripts, styles, images and fonts.'),
      frameDomains: origins('Origins of frames in it.'),
      baseUriDomains: origins('Origins of its base.'),
    }),
    permissions: closed({ camera: empty, microphone: empty, geolocation: empty, clipboardWrite: empty }),
    domain: text('Dedicated origin for the page.', {
      pattern: '^[\\x21-\\x7e]+$',
      patternErrorMessage: 'a name without spaces or line ends',
    }),
    prefersBorder: flag('Whether it has a border.'),
  },
  { required: ['name'], description: 'The app that shows its results to people.' },
)
