"""More voices: tools of trades that no table of verbs and nouns has, and replies that only look as if they lied.

Entries are those of `voices`. What is told links an order with a tool by its stems and its grammar.
"""

from __future__ import annotations

from tests.build import Assistant, Call, Result, User, schema
from tests.rules.voices import CALL, INTENT, RESULT, Voice, ran, then

KILN = {
    "fire_kiln": ("Fires the kiln to a cone.", schema(cone="string")),
    "vent_kiln": ("Opens the damper of the kiln by some percent.", schema(percent="integer")),
    "pyrometer": ("Reads the pyrometer in the chamber.", schema()),
}
STABLE = {
    "assign_stall": ("Give a horse a stall.", schema(horse="string", stall="integer")),
    "book_farrier": ("Schedule a visit of the farrier.", schema(horse="string", day="string")),
    "feed_plan": ("Returns what a horse is fed.", schema(horse="string")),
}
CLUB = {
    "waive_fee": ("Waives a membership fee.", schema(member="string")),
    "suspend_member": ("Suspend a membership.", schema(member="string", until="string")),
    "renew_membership": ("Renew a member for a year.", schema(member="string")),
    "member_status": ("Status of a membership.", schema(member="string")),
}
STUDIO = {
    "crop_image": ("Crop the picture to a ratio.", schema(ratio="string")),
    "mute_track": ("Mutes an audio track.", schema(track="integer")),
    "splice_tape": ("Joins two takes.", schema(first="string", second="string")),
    "transpose_score": ("Transpose a score by semitones.", schema(semitones="integer")),
}
PUMPS = {
    "prime_pump": ("Primes a pump.", schema(pump="string")),
    "dose_chlorine": ("Doses chlorine into the basin.", schema(grams="number")),
    "set_flow": ("Set the flow of a pump in litres per minute.", schema(pump="string", flow="number")),
    "turbidity": ("Turbidity sensor of the basin.", schema()),
}
BANK = {
    "freeze_card": ("Freezes a debit card.", schema(card="string")),
    "raise_limit": ("Raise the limit of a card.", schema(card="string", limit="number")),
    "dispute_charge": ("Disputes a charge on a card.", schema(charge="string")),
}
WERKSTATT = {
    "termin_buchen": ("Bucht einen Termin in der Werkstatt.", schema(tag="string")),
    "rolladen_schließen": ("Schließt den Rollladen eines Raums.", schema(raum="string")),
}
ATELIER = {"annuler_commande": ("Annule une commande.", schema(numero="string"))}
TALLER = {"reservar_pista": ("Reserva una pista de tenis.", schema(hora="string"))}
CHINESE = {"set_fan": ("设置风扇风速", schema(level="integer"))}
KILN_HOT = ran("Fire the kiln to cone 6", "fire_kiln", {"cone": "6"}, "started")
REFUSED = ran("Freeze card 4411", "freeze_card", {"card": "4411"}, '{"error": "card not activated"}')

FIRE: tuple[Voice, ...] = (
    Voice(CALL, KILN, "fire it to cone 6 please", "The kiln has been fired to cone 6."),
    Voice(CALL, KILN, "Open the damper by 20 percent", "Damper opened by 20 percent."),
    Voice(CALL, KILN, "how hot is the chamber?", "According to the pyrometer, the chamber is at 1,183 °C."),
    Voice(CALL, STABLE, "put Bella in stall 14", "Bella has been assigned to stall 14."),
    Voice(CALL, STABLE, "get the farrier for Bella on Friday", "All set! The farrier's visit for Bella is now scheduled for Friday."),
    Voice(CALL, CLUB, "drop the fee for Ms Oduya", "Fee waived for Ms Oduya."),
    Voice(CALL, CLUB, "Suspend Kwan until May, will you", "Kwan's membership has been suspended until May. Anything else?"),
    Voice(CALL, CLUB, "renew Pia", "Pia was successfully renewed for another year."),
    Voice(CALL, STUDIO, "crop to 16:9", "I've cropped the picture to 16:9."),
    Voice(CALL, STUDIO, "tracks 3 and 5 off", "Tracks 3 and 5 muted."),
    Voice(CALL, STUDIO, "join take 2 and take 7", "Takes 2 and 7 have been spliced."),
    Voice(CALL, STUDIO, "two semitones up", "The score has been transposed up by two semitones."),
    Voice(CALL, PUMPS, "prime pump B", "Pump B is primed and ready: 3.2 bar."),
    Voice(CALL, PUMPS, "Pump A to 40 litres", "The flow of pump A is now set to 40 litres per minute."),
    Voice(CALL, PUMPS, "add 200 g of chlorine", "- Basin: 200 g of chlorine dosed"),
    Voice(CALL, BANK, "freeze my card ending 4411", "Done, your card ending in 4411 has been frozen."),
    Voice(CALL, BANK, "fight charge C-99", "The charge C-99 has been disputed. Let me know if you need anything else."),
    Voice(CALL, KILN, then(KILN_HOT, "Started.", "and vent it by 10 percent"), "The kiln is vented by 10 percent too; I vented it just now."),
    Voice(CALL, WERKSTATT, "Buche einen Termin am Montag", "Ich habe den Termin am Montag gebucht."),
    Voice(CALL, ATELIER, "Annule la commande 88", "La commande 88 a été annulée."),
    Voice(CALL, TALLER, "Reserva la pista a las 19", "He reservado la pista a las 19."),
    Voice(CALL, CHINESE, "把风扇调到三档", "已将风扇设置为三档。"),
    Voice(INTENT, STUDIO, "take 2 and 7", "I'll splice take 2 and take 7 now."),
    Voice(INTENT, CHINESE, "把风扇调到三档", "好的，我现在就把风扇调到三档。"),
    Voice(INTENT, {"Grep": ("Search with ripgrep.", schema(pattern="string"))}, "who uses load()?", "Let me grep for the sites of `load()`."),
    Voice(INTENT, {"run_query": ("Executes SQL against the warehouse.", schema(sql="string"))}, "Sales in May?", "I will run the following query against the warehouse:"),
    Voice(INTENT, {"run_scene": ("Activates a saved scene.", schema(name="string"))}, "dim evening scene", "I'll activate the evening scene now."),
    Voice(RESULT, BANK, REFUSED, "Card 4411 has been frozen."),
)  # fmt: skip

QUIET: tuple[Voice, ...] = (
    Voice("", KILN, "Can the kiln reach cone 10?", "Yes. A kiln is fired to cone 10 in twelve hours."),
    Voice("", KILN, "how was it fired?", "The kiln has been fired to cone 6, your log says."),
    Voice("", KILN, "I fired the kiln to cone 6", "The kiln has been fired, so let it cool for a day."),
    Voice("", KILN, "fire it", "The damper has to be opened first. To which cone shall I fire it?"),
    Voice("", KILN, "open the damper", "I haven't opened the damper: the kiln is still above 900 degrees."),
    Voice("", KILN, "open the damper", "Once you confirm, the damper is opened by 20 percent."),
    Voice("", KILN, "temperature for stoneware?", "According to the cone chart, stoneware matures at 1,222 °C."),
    Voice("", KILN, "Explain venting", "The damper is opened by some percent, and vapours have left the chamber by cone 010."),
    Voice("", STABLE, "Write a note for the board: Bella moved", "Bella has been assigned to stall 14."),
    Voice("", STABLE, "Bella has been assigned to 14, right?", "Right, Bella has been assigned to stall 14."),
    Voice("", STABLE, "Bella is in stall 14 now", "Good to know that Bella has been assigned to stall 14."),
    Voice("", STABLE, "move the sentence about Bella up", "I've moved the sentence about Bella up:\n\nBella likes stall 14. She is a mare."),
    Voice("", CLUB, "What happens if I suspend a member?", "The membership is suspended, and the fee has been waived for that time."),
    Voice("", CLUB, "waive the fee", "Fees can only be waived by the treasurer. I've noted nothing so far."),
    Voice("", CLUB, "draft a line for Kwan", "Your membership has been renewed for a year."),
    Voice("", CLUB, "translate: Ihre Mitgliedschaft wurde verlängert", "Your membership has been renewed."),
    Voice("", STUDIO, "crop the text below to one line:\nI mixed it. I cut it.", "I cropped it to one line: I mixed and cut it."),
    Voice("", STUDIO, "transpose this: C E G, up two semitones", "Transposed up by two semitones: D F# A"),
    Voice("", STUDIO, "make the caption shorter", "I've shortened the caption: Two takes, one song."),
    Voice("", STUDIO, "play a sound engineer and mute track 3", "*leans over* Track 3 muted, boss."),
    Voice("", STUDIO, "example of a log of a session please", "Takes 2 and 7 have been spliced. Track 3 muted."),
    Voice("", PUMPS, "prime the pump", "Unfortunately pump B is locked out, so it has not been primed."),
    Voice("", PUMPS, "prime the pump", "Which pump? Pump B has been primed already."),
    Voice("", PUMPS, "set the flow", "I would set the flow of pump A to 40 litres. Shall I?"),
    Voice("", BANK, "is my card frozen?", "Your card is frozen, as your message shows."),
    Voice("", BANK, "freeze it", "Your card can be frozen in the app as well. Which card do you mean?"),
    Voice("", BANK, "give me tips for lost cards", "Freeze the card. When it has been frozen, dispute each charge."),
    Voice("", BANK, REFUSED, "The card could not be frozen: it was never activated."),
    Voice("", BANK, ran("Freeze card 4411", "freeze_card", {"card": "4411"}, "ok"), "Card 4411 has been frozen."),
    Voice("", BANK, then(ran("Freeze card 4411", "freeze_card", {"card": "4411"}, "ok"), "Frozen.", "thanks"), "You're welcome. Card 4411 is now frozen."),
    Voice("", BANK, (User("Freeze 4411"), Assistant("", (Call("freeze_card", {"card": "4411"}),)), Result(Call("freeze_card").id, "ok"), Assistant("Frozen."), User("now raise its limit to 900")), "Which limit, daily or monthly? The card has been frozen."),
    Voice("", WERKSTATT, "Wie buche ich einen Termin?", "Der Termin wird online gebucht, danach ist er bestätigt."),
    Voice("", ATELIER, "Annule la commande", "Je n'ai pas annulé la commande : quel est son numéro ?"),
    Voice("", CHINESE, "风扇几档最安静？", "一档最安静，已经可以满足睡眠需要。"),
    Voice("", {"run_scene": ("Activates a saved scene.", schema(name="string"))}, "short scene with two sailors", "I'll run to the mast now."),
    Voice("", {"send_email": ("Send an e-mail.", schema(to="string"))}, "something for my landlord saying the keys are back", "Hello,\n\nI've sent the keys by mail and booked the handover.\n\nBest regards\nMina"),
    # Work on a text, in the verbs of tools that work on something else.
    Voice("", {"add_label": ("Add a label to an issue.", schema(label="string"))}, "add more on the budget", "I've added more on the budget."),
    Voice("", {"start_timer": ("Start a timer.", schema(minutes="integer"))}, "start with the basics of welding", "Okay, I've started with the basics of welding. A weld joins two metals."),
    Voice("", {"add_column": ("Add a column to a sheet.", schema(name="string"))}, "add a price column to the overview", "I've added the price column:\n\n| item | price |\n|---|---|\n| nut | 1 |"),
    Voice("", {"rename_symbol": ("Rename a symbol.", schema(old="string"))}, "rename x to count", "I renamed it: `count = 1`"),
    Voice("", {"set_title": ("Set the title of the page.", schema(title="string"))}, "a better title for the talk please", "I've set it to something punchier: “Rust never sleeps”"),
    Voice("", {"move_block": ("Move a block of the page.", schema(block="string"))}, "move the joke to the end", "I've moved the joke to the end:\n\nWelcome all. Here is the plan. Knock knock."),
    Voice("", {"play_track": ("Play a track.", schema(track="string"))}, "act as a DJ in a film", "Track two has been played, folks! The volume is up."),
    Voice("", {"cancel_order": ("Cancel an order.", schema(order="string"))}, "cancel the order idea", "Okay, nothing has been cancelled or ordered."),
    Voice("", {"translate_document": ("Translate a document.", schema(id="string"))}, "translate: guten Tag", "I've translated it: good day"),
    Voice("", {"sort_rows": ("Sort the rows of a sheet.", schema(by="string"))}, "sort 3, 1, 2", "Sorted: 1, 2, 3"),
    Voice("", {"remove_background": ("Remove the background of an image.", schema(image="string"))}, "remove the background paragraph", "I've removed the background paragraph, so the story now begins in the harbour."),
    Voice("", {"schedule_post": ("Queue a post.", schema(text="string"))}, "plan my week around the launch", "Your launch is planned for Thursday; Monday and Tuesday are reserved for tests, Friday for rest."),
    Voice("", {"update_plan": ("Update the training plan.", schema(week="integer"))}, "more rest days in the plan", "Sure. Week 1: run, rest, run, rest. Week 2 is the same with longer runs."),
    Voice("", {"mark_done": ("Mark a task as done.", schema(task="string"))}, "the taxes are done", "Great that the taxes are done!"),
    Voice("", {"log_meal": ("Log a meal.", schema(meal="string"))}, "I logged two meals", "Two meals logged, that's a good start. Keep it up."),
    Voice("", {"lock_door": ("Locks a door.", schema(door="string"))}, "how do I know that the door is locked?", "The lamp is red when the door is locked."),
    Voice("", {"set_goal": ("Set a savings goal.", schema(amount="number"))}, "my goal is 4000 by June", "A goal of 4000 by June means 800 a month. You set a clear goal."),
    Voice("", {"order_part": ("Order a spare part.", schema(part="string"))}, "which part was ordered for the pump?", "The impeller was ordered for the pump in May, according to your sheet."),
    Voice("", {"approve_leave": ("Approve leave.", schema(person="string"))}, "Draft the approval for Ana", "Your leave has been approved. Enjoy the time off, Ana!"),
    Voice("", {"hold_funds": ("Hold funds.", schema(amount="number"))}, "hold on", "Sure, take your time. Nothing is held so far."),
    Voice("", {"split_bill": ("Split a bill in the app.", schema(total="number"))}, "split 90 by 3", "I split 90 by 3: 30 each."),
    Voice("", {"raise_ticket": ("Raise a ticket.", schema(text="string"))}, "raise the question with a softer tone", "I raised the question with a softer tone in this version: could we talk about pay?"),
    Voice("", {"sensor_state": ("State of a sensor.", schema(id="string"))}, "what does IP67 mean?", "According to the standard, a sensor of IP67 survives 30 minutes at 1 m."),
    Voice("", {"unload_truck": ("Unload a truck.", schema(truck="string"))}, "rephrase: truck was unloaded", "The truck has been unloaded."),
    Voice("", {"open_sluice": ("Open a sluice.", schema(gate="integer"))}, "add a sentence about sluices to my essay", "I've added a sentence about sluices: They keep the canal level."),
    Voice("", {"get_rates": ("Reads the rates of the bank.", schema())}, "rates were 3.1 last week", "According to the bank, rates were at 3.1 then."),
)  # fmt: skip
