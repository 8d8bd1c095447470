// How a plugin that says who calls is tested: with users that a test makes up. For `testHost`.
import type { User } from '../kernel/user.ts'

/** A user whom a test makes up; default: `tester`, without scopes and roles. `claims` go over what the rest comes to. */
export type TestUser = Partial<Pick<User, 'subject' | 'clientId' | 'scopes' | 'roles' | 'claims'>>

/** How a plugin that says who calls is tested: by an issuer of the test's own, in the place of the config's. */
export interface UnderTest<Options> {
  readonly options: Options
  /** A token of this user for a resource, which expires in so many seconds. */
  issue(user: TestUser, resource: string, lifetime: number): string
  close?(): Promise<void>
}
