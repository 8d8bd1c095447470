// Pages of the bridge as companies would have them, for tests and pictures.
import {
  type AccountView,
  type ConsentQuestion,
  createPages,
  type Message,
  type PageSettings,
} from '../../../plugins/auth-bridge/pages/index.ts'

export const LOGO = Buffer.from(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#0f6e56"/>' +
    '<path d="M9 22 16 9l7 13" fill="none" stroke="#fff" stroke-width="3"/></svg>',
)

export const SETTINGS: PageSettings = {
  page: { name: 'Acme Tools', support: 'mailto:help@acme.example' },
  label: 'Microsoft',
  logo: { type: 'image/svg+xml', data: LOGO },
  base: '/auth',
  scopeTitles: new Map([
    ['orders:read', 'Read orders'],
    ['orders:write', 'Change orders'],
  ]),
}

const person = { name: 'Ada Lovelace', email: 'ada@acme.example', subject: 'u-1815' }

/** A client with a document, on this computer. */
export const KNOWN: ConsentQuestion = {
  client: {
    name: 'Claude Code',
    id: 'https://claude.ai/oauth/claude-code',
    documentHost: 'claude.ai',
    isKnown: false,
    homepage: 'https://claude.ai/code',
  },
  redirect: { uri: 'http://127.0.0.1:53682/callback' },
  person,
  resources: ['https://tools.acme.example/mcp'],
  scopes: ['orders:read', 'orders:write', 'offline_access'],
  remembered: true,
  token: 'a-token',
}

/** One that registered itself, whose website has changed. */
export const UNVERIFIED: ConsentQuestion = {
  ...KNOWN,
  client: { name: 'Claude', id: 'dcr-7f3a', documentHost: undefined, isKnown: false, homepage: 'https://claude.ai' },
  redirect: { uri: 'https://callback.agent-tools.example/oauth/done' },
  remembered: false,
  changed: 'redirect',
}

/** One of the config, in an app. */
export const IN_APP: ConsentQuestion = {
  ...KNOWN,
  client: { name: 'Cursor', id: 'cursor', documentHost: undefined, isKnown: true },
  redirect: { uri: 'cursor://anysphere.cursor-mcp/oauth/callback' },
  changed: 'document',
}

export const ACCOUNT: AccountView = {
  person,
  signedInWith: 'Microsoft',
  grants: [
    {
      grantId: 'grant-1',
      client: KNOWN.client,
      redirectUri: 'http://127.0.0.1:7777/callback',
      scopes: KNOWN.scopes,
      since: Date.UTC(2026, 2, 3, 14),
      used: Date.UTC(2026, 9, 21, 9),
    },
    {
      grantId: 'grant-2',
      client: UNVERIFIED.client,
      redirectUri: 'https://callback.agent-tools.example/callback',
      scopes: [],
      since: Date.UTC(2026, 10, 1),
    },
  ],
  token: 'a-token',
  notice: 'You removed the access of “Cursor”. Access ends within 10 min.',
}

export const FAULT: Message = {
  title: 'You could not be signed in',
  text: 'Your account is not in a group that can use Acme Tools. Ask for access, then try again.',
  detail: 'Request 01JD8Z3M',
  action: { label: 'Try again', href: '/auth/again' },
  isError: true,
}

export const SIGN_IN = {
  text: 'Sign in to see the clients with access to your account.',
  label: 'Microsoft',
  action: '/auth/sign-in',
}

const development = createPages({
  ...SETTINGS,
  label: 'the development login',
  isDevelopment: true,
  users: [{ id: 'ada', name: 'Ada Lovelace', roles: ['admin'] }, { id: 'bob' }],
})

/** Every page once, by its name. */
export function allPages(pages = createPages(SETTINGS)) {
  return {
    consent: pages.consent(KNOWN),
    'consent-unverified': pages.consent(UNVERIFIED),
    'consent-app': pages.consent(IN_APP),
    account: pages.account(ACCOUNT),
    'account-empty': pages.account({ ...ACCOUNT, grants: [] }),
    message: pages.message({ title: 'You are signed out', text: 'You can close this window.', isError: false }),
    fault: pages.message(FAULT),
    'sign-in': pages.signIn(SIGN_IN),
    'development-users': development.chooseUser({ state: 'a-state', action: '/auth/callback' }),
    'development-consent': development.consent(UNVERIFIED),
    'development-fault': development.message(FAULT),
  }
}
