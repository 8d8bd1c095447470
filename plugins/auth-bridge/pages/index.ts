// The pages of the bridge, which people see when an MCP client asks to act for them: pure functions from data to HTML,
// without a script and without a request of their own.
import { writeAccount } from './account.ts'
import { writeConsent } from './consent.ts'
import { createLayout } from './layout.ts'
import { writeChoice, writeLeave, writeMessage, writeSignIn } from './message.ts'
import type { AccountView, ChoiceView, ConsentQuestion, Message, Page, PageSettings, SignInView } from './views.ts'

export { readLogo } from './logo.ts'
export type {
  AccountView,
  ConsentQuestion,
  Logo,
  Message,
  Page,
  PageSettings,
  ShownClient,
  ShownGrant,
  ShownPerson,
  SignInView,
} from './views.ts'

/**
 * Each with the policy that it must be sent with. Send them with `Referrer-Policy: same-origin`: without a referrer browsers
 * say `Origin: null` of a form.
 */
export interface Pages {
  /** Posts `csrf` and `decision`, `allow` or `deny`, to its own URL. */
  consent(question: ConsentQuestion): Page
  /** Posts `csrf` and either `revoke`, the id of a grant, or `signOut`, `yes`, to its own URL. */
  account(view: AccountView): Page
  message(message: Message): Page
  /** One button, `Sign in with ...`: a link. */
  signIn(view: SignInView): Page
  /** Sends `state` and `user`, and `roles` of a user that is not listed, by GET. */
  chooseUser(view: ChoiceView): Page
  /**
   * In the place of a redirect after the consent form: browsers hold all redirects that follow a form to the form's policy,
   * up to those of the client's own site. Throws a TypeError where no page may lead there, such as to `javascript:`.
   */
  leave(uri: string): Page
}

export function createPages(settings: PageSettings): Pages {
  const layout = createLayout(settings)
  return {
    consent: question => writeConsent(question, settings, layout),
    account: view => writeAccount(view, layout),
    message: message => writeMessage(message, layout),
    signIn: view => writeSignIn(view, layout),
    chooseUser: view => writeChoice(view, settings, layout),
    leave: uri => writeLeave(uri, layout),
  }
}
