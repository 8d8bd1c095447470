// tool-policy: policies, rules, and what names them.
import { type Row, withPlugin } from './row.ts'

const AUTH =
  '  auth-jwt: { authority: "http://127.0.0.1:9" }\n  resource-metadata: { authorizationServers: ["http://127.0.0.1:9"] }\n'
const policy = (text: string, routes = 'routes: { /: { toolsets: a } }') =>
  withPlugin(`${AUTH}  tool-policy:\n${text}`, { routes })

export const POLICY_ROWS: readonly Row[] = [
  {
    mistake: 'a rule with a misspelt policy',
    files: policy('    policies: { admin: { role: admin } }\n    rules:\n      echo: amdin # HERE'),
    says: ['there is no policy "amdin"', 'did you mean "admin"?'],
  },
  {
    mistake: 'a rule with an unknown policy',
    files: policy('    policies: { admin: { role: admin } }\n    rules:\n      echo: everybody # HERE'),
    says: ['there is no policy "everybody"', 'there are: admin'],
  },
  {
    mistake: 'a detailed rule with an unknown policy',
    files: policy('    rules:\n      echo: { policy: everybody } # HERE'),
    says: ['there is no policy "everybody"', 'there are none'],
  },
  {
    mistake: 'a route with a misspelt policy',
    files: policy(
      '    policies: { admin: { role: admin } }',
      'routes:\n  /:\n    toolsets: a\n    authorize: admim # HERE',
    ),
    says: ['there is no policy "admim"', 'did you mean "admin"?', "{ scope: 'admim' }"],
  },
  {
    mistake: 'a rule that matches nothing',
    files: policy('    rules:\n      ehco: { role: admin } # HERE'),
    severity: 'warning',
    says: ['the rule matches nothing that is defined at start', 'did you mean "echo"?'],
  },
  {
    mistake: 'a rule over URIs without its prefix',
    files: policy('    rules:\n      "notes://*": { role: admin } # HERE'),
    severity: 'warning',
    says: ['the rule matches nothing that is defined at start', 'a rule over URIs begins with "resource:"'],
  },
  {
    mistake: 'a scope with a space',
    files: policy('    policies:\n      both:\n        scope: a b # HERE'),
    says: ['nobody can meet it: scope "a b" holds a space', 'write a list of scopes'],
  },
  {
    mistake: 'a claim without a value',
    files: policy('    policies:\n      gold:\n        claim:\n          tier: [] # HERE'),
    says: ['nobody can meet it: claim "tier" has no value that fits', 'list one'],
  },
  {
    mistake: 'anyOf that is empty',
    files: policy('    policies:\n      any:\n        anyOf: [] # HERE'),
    says: ['nobody can meet it: anyOf is empty', 'list policies, or remove it'],
  },
  {
    mistake: 'a policy with a key that is not known',
    files: policy('    policies:\n      admin:\n        roles: admin # HERE'),
    says: ['unknown option', 'did you mean "role"?'],
  },
  {
    mistake: 'a mode that is not known',
    files: policy('    mode: shadwo # HERE'),
    says: ['found "shadwo"', 'did you mean "shadow"?'],
  },
  {
    mistake: 'an answer to denied calls that is not known',
    files: policy('    onDenied: refuse # HERE'),
    says: ['found "refuse"', "'challenge' or 'error'"],
  },
]
