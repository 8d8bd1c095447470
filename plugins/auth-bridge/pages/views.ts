// What the pages show: plain data, whose texts may be anybody's.
import type { FilledAuthBridge } from '../options.ts'

export interface Page {
  readonly html: string
  /** Value of Content-Security-Policy. */
  readonly policy: string
}

/** An MCP client, and what is known of it. */
export interface ShownClient {
  readonly name: string | undefined
  readonly id: string
  /** Host of its metadata document; undefined: it registered itself, and anybody could have chosen its name. */
  readonly documentHost: string | undefined
  /** Named in the config. */
  readonly isKnown: boolean
  /** Shown where it is known, or under the host of its document. */
  readonly homepage?: string
}

export interface ShownPerson {
  readonly name?: string
  readonly email?: string
  readonly subject: string
}

export interface ConsentQuestion {
  readonly client: ShownClient
  readonly redirect: { readonly uri: string }
  readonly person: ShownPerson
  /** URLs of what it may use. */
  readonly resources: readonly string[]
  readonly scopes: readonly string[]
  /** Scopes that it asked for, too, and that this person may not have. */
  readonly withheld?: readonly string[]
  /** Whether the answer will be remembered for this browser. */
  readonly remembered: boolean
  /** It was allowed before; since then this changed: where it sends people back to, or its metadata document. */
  readonly changed?: 'redirect' | 'document'
  /** CSRF token, the field `csrf`. */
  readonly token: string
}

export interface ShownGrant {
  readonly id: string
  readonly client: ShownClient
  readonly redirectHost: string
  /** URLs of what it may use. */
  readonly resources?: readonly string[]
  readonly scopes: readonly string[]
  /** Milliseconds since the epoch. */
  readonly since: number
  /** Milliseconds since the epoch; undefined: never. */
  readonly used: number | undefined
}

export interface AccountView {
  readonly person: ShownPerson
  /** The provider's label. */
  readonly signedInWith: string
  readonly grants: readonly ShownGrant[]
  /** CSRF token, the field `csrf`. */
  readonly token: string
  /** What was just done. */
  readonly notice?: string
}

export interface Message {
  readonly title: string
  readonly text: string
  /** Small, such as the id of a request. */
  readonly detail?: string
  /** A link; left out where its address is none that is safe to click on. */
  readonly action?: { readonly label: string; readonly href: string }
  /**
   * A plain link under the button, such as the way back to the application: an address of an app, too. Left out where its
   * address is none that is safe to click on.
   */
  readonly other?: { readonly label: string; readonly href: string }
  readonly isError: boolean
}

export interface SignInView {
  readonly text: string
  /** The provider's label. */
  readonly label: string
  /** Where the button leads, with GET: the provider's pages come next, and a form would not be let there. */
  readonly action: string
}

/** The sign-in page of the development provider. */
export interface ChoiceView {
  readonly state: string
  /** The form's target URL. */
  readonly action: string
}

export interface Logo {
  /** Media type. */
  readonly type: string
  readonly data: Buffer
}

export interface PageSettings {
  readonly page: FilledAuthBridge['page'] & { readonly name: string }
  /** The provider's label. */
  readonly label: string
  readonly logo?: Logo
  /** Users of the development provider. */
  readonly users?: NonNullable<FilledAuthBridge['provider']['users']>
  /** Path of the bridge, such as `/auth`; the account page is `account` under it. */
  readonly base: string
}
