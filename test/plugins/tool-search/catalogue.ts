// Two hundred tools as companies have them, for tests of what is found: names in several manners, and a sentence each.
import { defineTool, type ToolDefinition } from '../../../core/index.ts'

/** `name(parameters): description`, a line each. */
const TOOLS = `
github_create_issue(repo title body labels): Opens a new issue in a repository.
github_list_issues(repo state assignee): Lists the issues of a repository.
github_close_issue(repo number reason): Closes an issue.
github_add_comment(repo number text): Writes a comment under an issue or a pull request.
github_create_pull_request(repo base head title): Proposes to merge a branch into another one.
github_merge_pull_request(repo number method): Merges a pull request.
github_review_pull_request(repo number verdict): Approves a pull request or asks for changes.
github_search_code(query language): Looks for text in the source of all repositories.
github_get_file(repo path ref): Reads a file of a repository.
github_push_file(repo path content branch): Commits a file to a branch.
github_list_branches(repo): Lists branches.
github_create_branch(repo name from): Makes a branch.
github_list_workflow_runs(repo status): Lists recent runs of continuous integration.
github_rerun_workflow(repo run): Starts a failed build again.
github_create_release(repo tag notes): Publishes a release with its notes.
jira_create_ticket(project summary priority): Files a ticket in a project of the tracker.
jira_transition_ticket(key status): Moves a ticket to another column of the board.
jira_assign_ticket(key person): Gives a ticket to somebody.
jira_log_work(key hours date): Records time that was spent on a ticket.
jira_search(jql): Finds tickets by a query of the tracker.
jira_list_sprints(board): Lists sprints of a board.
jira_add_attachment(key file): Attaches a file to a ticket.
slack_send_message(channel text): Posts a message to a channel.
slack_send_direct_message(person text): Writes to one person privately.
slack_list_channels(query): Lists channels of the workspace.
slack_read_history(channel since): Reads what was said in a channel.
slack_add_reaction(channel message emoji): Puts an emoji on a message.
slack_set_status(text until): Sets the text that colleagues see beside your name.
slack_upload_file(channel file): Shares a file in a channel.
slack_invite_to_channel(channel person): Adds somebody to a channel.
gmail_send_email(to subject body cc): Sends an e-mail.
gmail_search_messages(query after): Searches the mailbox.
gmail_read_message(id): Opens one e-mail.
gmail_reply(id body): Answers an e-mail in its thread.
gmail_add_label(id label): Files an e-mail under a label.
gmail_create_draft(to subject body): Keeps an unsent e-mail for later.
gmail_create_filter(from label): Sorts incoming mail by a rule.
gmail_set_vacation_reply(text from until): Answers mail by itself while you are away.
calendar_create_event(title start end attendees): Puts a meeting into the calendar.
calendar_list_events(from until): Shows what is planned.
calendar_delete_event(id): Cancels a meeting.
calendar_move_event(id start): Moves a meeting to another time.
calendar_find_free_slot(people minutes): Finds a time when everybody is free.
calendar_respond_to_invite(id answer): Accepts or declines an invitation.
calendar_book_room(building people start): Reserves a meeting room.
drive_search_files(query type): Finds documents in the shared drive.
drive_upload_file(folder file): Puts a file into a folder.
drive_download_file(id format): Fetches a document's content.
drive_share_file(id person role): Gives somebody access to a document.
drive_create_folder(name parent): Makes a folder.
drive_move_file(id folder): Moves a document elsewhere.
drive_delete_file(id): Moves a document to the bin.
docs_create_document(title text): Starts a new text document.
docs_append_text(id text): Adds a paragraph at the end of a document.
docs_export_pdf(id): Saves a document as PDF.
sheets_read_range(id range): Reads cells of a spreadsheet.
sheets_write_range(id range values): Writes cells of a spreadsheet.
sheets_append_row(id values): Adds a row below the last one.
sheets_create_chart(id range kind): Draws a chart of a range.
slides_create_presentation(title outline): Makes a slide deck.
notion_create_page(parent title content): Adds a page to the wiki.
notion_search(query): Finds pages of the wiki.
notion_update_page(id content): Changes a page of the wiki.
notion_query_database(id filter): Lists entries of a table in the wiki.
stripe_create_customer(email name): Registers a customer for billing.
stripe_list_charges(customer from): Lists payments that were taken.
stripe_refund_charge(charge amount reason): Gives a payment back, wholly or in part.
stripe_create_invoice(customer items due): Draws up an invoice.
stripe_send_invoice(id): Mails an invoice to its customer.
stripe_void_invoice(id): Makes an invoice that was never paid void.
stripe_create_subscription(customer plan trial): Starts a recurring payment.
stripe_cancel_subscription(id atPeriodEnd): Ends a recurring payment.
stripe_get_balance(): Says how much money the account holds.
stripe_create_payment_link(price quantity): Makes a page where anybody can pay.
stripe_list_disputes(status): Lists payments that card holders contest.
shop_get_order(id): Shows an order with its lines.
shop_list_orders(status customer since): Lists orders of the shop.
shop_cancel_order(id reason): Cancels an order that was not shipped.
shop_create_product(title price sku): Adds an article to the shop.
shop_update_price(sku price currency): Changes what an article costs.
shop_update_stock(sku count warehouse): Corrects how many pieces of an article there are.
shop_get_stock(sku warehouse): Says how many pieces of an article are left.
shop_create_discount(code percent until): Makes a coupon code.
shop_create_return(order lines): Opens a return for goods that a customer sends back.
shipping_create_label(order carrier weight): Prints a shipping label.
shipping_track_parcel(number): Says where a parcel is.
shipping_list_carriers(country): Lists carriers that deliver to a country.
shipping_estimate_cost(from to weight): Estimates what sending a parcel costs.
crm_create_lead(name company email): Notes somebody who may buy.
crm_update_contact(id fields): Changes the data of a contact.
crm_find_contact(query): Looks a person or a company up.
crm_log_call(contact notes): Notes what was said on the phone.
crm_create_deal(contact amount stage): Opens a sales opportunity.
crm_move_deal(id stage): Moves an opportunity along the pipeline.
crm_list_deals(owner stage): Lists opportunities.
crm_merge_contacts(first second): Makes one contact of two duplicates.
support_create_ticket(customer subject text): Opens a case for a customer.
support_reply_to_ticket(id text): Answers a customer's case.
support_escalate_ticket(id team): Hands a case to the second line.
support_close_ticket(id): Marks a case as solved.
support_search_articles(query): Searches the help centre.
support_get_satisfaction(from until): Says how content customers were.
k8s_list_pods(namespace selector): Lists pods of a cluster.
k8s_get_logs(pod container lines): Reads what a container wrote.
k8s_restart_deployment(name namespace): Rolls the pods of a deployment.
k8s_scale_deployment(name replicas): Changes how many replicas run.
k8s_apply_manifest(yaml): Creates or changes objects of a cluster.
k8s_delete_pod(name namespace): Removes a pod.
k8s_describe_node(name): Shows capacity and conditions of a machine.
k8s_rollback_deployment(name revision): Goes back to an earlier version of a deployment.
k8s_list_events(namespace): Lists what happened in a namespace.
aws_list_instances(region state): Lists virtual machines.
aws_start_instance(id): Boots a virtual machine.
aws_stop_instance(id): Shuts a virtual machine down.
aws_list_buckets(): Lists buckets of object storage.
aws_put_object(bucket key body): Stores an object in a bucket.
aws_get_object(bucket key): Fetches an object from a bucket.
aws_get_costs(from until service): Says what the cloud cost.
aws_invoke_function(name payload): Runs a serverless function.
aws_create_alarm(metric threshold): Watches a metric and tells when it crosses a line.
aws_rotate_access_key(user): Replaces an access key.
dns_list_records(zone): Lists the records of a domain.
dns_create_record(zone name type value): Adds a record to a domain.
dns_delete_record(zone id): Removes a record of a domain.
tls_renew_certificate(domain): Gets a new certificate before the old one ends.
db_run_query(sql database): Runs a read-only SQL statement.
db_list_tables(database): Lists tables.
db_describe_table(table): Shows the columns of a table.
db_explain_query(sql): Shows the plan of a statement.
db_create_backup(database): Takes a snapshot of a database.
db_restore_backup(snapshot): Brings a database back to a snapshot.
db_kill_connection(id): Ends a session of the database that hangs.
cache_get_key(key): Reads a value from the cache.
cache_flush(pattern): Empties the cache.
queue_list_messages(queue): Peeks at messages that wait.
queue_purge(queue): Throws all messages of a queue away.
queue_redrive_dead_letters(queue): Sends failed messages through again.
getDeployStatus(service): Says how far a deployment is.
startDeploy(service version): Brings a version to production.
rollbackDeploy(service): Takes the last version back.
toggleFeatureFlag(flag enabled audience): Switches a feature on or off.
listFeatureFlags(): Lists features and whether they are on.
metrics_query(expression from until): Asks the monitoring system for a time series.
metrics_list_alerts(state): Lists alerts that fire.
metrics_silence_alert(id hours): Mutes an alert for a while.
incident_open(title severity): Declares an incident and calls the people on duty.
incident_add_update(id text): Writes to the timeline of an incident.
incident_resolve(id summary): Ends an incident.
oncall_who_is_on_duty(team): Says who has the pager now.
oncall_swap_shift(from to date): Trades a shift with a colleague.
logs_search(query service from): Searches the logs of all services.
errors_list_recent(service): Lists exceptions that came up lately.
errors_get_stack_trace(id): Shows where an exception was thrown.
hr_list_employees(department): Lists people who work here.
hr_get_employee(id): Shows somebody's record.
hr_request_time_off(from until kind): Asks for holidays or reports sick leave.
hr_approve_time_off(id): Grants somebody's holidays.
hr_get_payslip(employee month): Shows what somebody was paid.
hr_start_onboarding(employee start): Prepares the first day of a new colleague.
hr_post_job(title description): Advertises a vacancy.
hr_schedule_interview(candidate panel): Arranges a talk with an applicant.
expenses_submit_receipt(amount category image): Claims money that you laid out.
expenses_approve_report(id): Lets an expense claim be paid.
expenses_list_reports(status person): Lists expense claims.
accounting_create_journal_entry(date lines): Books an amount to accounts.
accounting_get_trial_balance(period): Shows the balance of every account.
accounting_list_unpaid_bills(supplier): Lists what we owe.
accounting_pay_bill(id account): Pays a supplier.
accounting_export_tax_report(year country): Writes the figures for the tax office.
travel_search_flights(from to date): Finds flights.
travel_book_flight(offer passenger): Buys a plane ticket.
travel_search_hotels(city from until): Finds places to stay.
travel_book_hotel(offer guest): Reserves a room for the night.
travel_cancel_booking(reference): Gives a trip back.
weather_get_forecast(place days): Tells tomorrow's weather and that of the days after it.
weather_get_current(place): Tells temperature, wind and rain right now.
maps_get_directions(from to mode): Plans the way between two places.
maps_geocode(address): Turns an address into coordinates.
maps_find_nearby(place kind radius): Finds restaurants, shops or chargers around a point.
translate_text(text to): Puts a text into another language.
detect_language(text): Says which language a text is in.
summarize_document(url length): Shortens a document to what matters.
transcribe_audio(file language): Writes down what is said in a recording.
image_generate(prompt size): Draws a picture from words.
image_resize(file width height): Makes a picture larger or smaller.
image_remove_background(file): Cuts out what a picture shows.
ocr_extract_text(file): Reads the text in a scanned page.
pdf_merge(files): Makes one PDF of several.
pdf_split(file pages): Takes pages out of a PDF.
video_cut_clip(file from until): Takes a part out of a film.
web_search(query site): Searches the web.
web_fetch_page(url): Reads a page of the web.
web_take_screenshot(url width): Takes a picture of a page.
currency_convert(amount from to): Converts money at today's rate.
stocks_get_quote(symbol): Says what a share costs.
news_get_headlines(topic country): Tells today's news.
time_get_current(zone): Says what time it is somewhere.
unit_convert(value from to): Converts metres into feet and the like.
users_create_account(email role): Gives somebody a login.
users_reset_password(email): Lets somebody choose a new password.
users_disable_account(email): Locks somebody out.
users_list_roles(email): Says what somebody may do.
users_grant_role(email role): Gives somebody more rights.
audit_list_entries(actor from): Lists who changed what.
surveys_create(title questions): Makes a questionnaire.
surveys_get_results(id): Shows what people answered.
newsletter_schedule_campaign(list subject at): Plans a mailing to subscribers.
newsletter_add_subscriber(list email): Puts an address on a mailing list.
newsletter_get_open_rate(campaign): Says how many read a mailing.
social_post_update(network text image): Publishes a post on social media.
social_list_mentions(network): Lists posts in which we are named.
ads_pause_campaign(id): Stops an advertisement for now.
ads_set_budget(id amount): Changes how much is spent on advertising.
warehouse_create_purchase_order(supplier lines): Orders goods from a supplier.
warehouse_receive_goods(order): Books a delivery in.
warehouse_count_inventory(shelf): Starts a count of what is on a shelf.
contracts_send_for_signature(document signers): Has a contract signed electronically.
contracts_list_expiring(days): Lists contracts that end soon.
`

const LINE = /^(\w+)\(([\w ]*)\): (.+)$/

/** What each of them runs is recorded by its name. */
export const catalogue = (ran: (name: string) => void = () => undefined): ToolDefinition[] =>
  TOOLS.trim()
    .split('\n')
    .map(line => {
      const [, name = '', parameters = '', description = ''] = LINE.exec(line) ?? []
      const properties = Object.fromEntries(
        parameters
          .split(' ')
          .filter(Boolean)
          .map(parameter => [parameter, { type: 'string' } as const]),
      )
      return defineTool({
        name,
        description,
        input: { type: 'object', properties },
        handler: () => {
          ran(name)
          return `${name} ran`
        },
      }) as unknown as ToolDefinition
    })
