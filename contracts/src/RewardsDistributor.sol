// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {MerkleProof} from "@openzeppelin/contracts/utils/cryptography/MerkleProof.sol";
import {Guarded} from "./Guarded.sol";

/// @title Pays accounts what the sealed epochs say they have earned.
/// @notice A leaf is (chain id, this contract, account, lifetime total). A claim pays the total minus
/// what was claimed before, so a lost, late or repeated claim never pays twice, one root replaces all
/// earlier ones, and one slot per account is all there is. A proposed root waits `timelock` seconds in
/// which a guardian may veto it, and no root pays out more than was committed and funded with it.
/// @dev Invariants: claimedTotal = sum of claimed[a] <= committedTotal, and
/// balance >= committedTotal - claimedTotal; seq, committedTotal and claimed[a] never fall. There is no
/// sweep: what is not claimed stays claimable. A lying proposer and a sleeping guardian together cost at
/// most committedTotal - claimedTotal. Fee-on-transfer and rebasing assets would break the invariants.
contract RewardsDistributor is Guarded {
    using SafeERC20 for IERC20;

    /// @notice May propose a root.
    bytes32 public constant PROPOSER_ROLE = keccak256("PROPOSER_ROLE");

    /// @notice A root that waits. `validAt` is zero when none does.
    struct Pending {
        bytes32 root;
        bytes32 manifest;
        uint256 committed;
        uint64 seq;
        uint64 validAt;
    }

    /// @notice What is paid out.
    IERC20 public immutable asset;
    /// @notice Seconds between proposal and acceptance.
    uint64 public immutable timelock;

    /// @notice The root that claims are checked against.
    bytes32 public root;
    /// @notice SHA-256 of the epoch file that the root follows from.
    bytes32 public manifest;
    /// @notice Number of accepted roots. Not an epoch number: an epoch without leaves proposes nothing.
    uint64 public seq;
    /// @notice The root that waits.
    Pending public pending;
    /// @notice Paid out so far.
    uint256 public claimedTotal;
    /// @notice Most that may ever be paid out under the present root.
    uint256 public committedTotal;
    /// @notice Paid out to each account so far.
    mapping(address account => uint256 amount) public claimed;

    /// @notice A root waits until `validAt`.
    event RootProposed(
        uint64 indexed seq, bytes32 indexed root, bytes32 manifest, uint256 committed, uint64 validAt, address proposer
    );
    /// @notice A waiting root was thrown out; the same seq is proposed again.
    event RootVetoed(uint64 indexed seq, bytes32 indexed root, address guardian, bytes32 reason);
    /// @notice Claims are checked against this root from now on.
    event RootAccepted(uint64 indexed seq, bytes32 indexed root, bytes32 manifest, uint256 committed);
    /// @notice `account` was paid `amount`; its lifetime total is now `cumulative`.
    event Claimed(address indexed account, uint64 indexed seq, uint256 amount, uint256 cumulative);

    /// @notice A root already waits; it cannot be replaced, or the wait could be restarted for ever.
    error PendingExists(uint64 seq);
    /// @notice Roots are numbered without gaps.
    error SeqNotNext(uint64 expected, uint64 got);
    /// @notice A root of zero would accept nothing and look like no root.
    error EmptyRoot();
    /// @notice Lifetime totals never fall, so neither does their sum.
    error CommittedShrank(uint256 previous, uint256 got);
    /// @notice The balance does not cover what would be claimable.
    error Underfunded(uint256 needed, uint256 balance);
    /// @notice No root waits.
    error NoPending();
    /// @notice The root may be accepted later than now.
    error TimelockRunning(uint64 validAt, uint256 nowS);
    /// @notice The leaf is not in the accepted root.
    error BadProof(bytes32 root, address account, uint256 cumulative);
    /// @notice The account has already had this total or more.
    error NothingToClaim(uint256 claimed, uint256 cumulative);
    /// @notice The root promises more than was committed with it.
    error OverCommitted(uint256 committed, uint256 total);
    /// @notice The three lists of a relayed claim differ in length.
    error LengthMismatch(uint256 accounts, uint256 cumulatives, uint256 proofs);

    /// @param asset_ What is paid out.
    /// @param admin First admin.
    /// @param adminDelayS Seconds between the two steps of a transfer of the admin role.
    /// @param timelock_ Seconds between proposal and acceptance.
    constructor(IERC20 asset_, address admin, uint48 adminDelayS, uint64 timelock_) Guarded(admin, adminDelayS) {
        _notZero(address(asset_), "asset");
        (asset, timelock) = (asset_, timelock_);
    }

    /// @notice Proposes the next root and starts the timelock.
    /// @param seq_ Must be `seq + 1`.
    /// @param root_ Root of the tree of lifetime totals.
    /// @param manifest_ SHA-256 of the epoch file.
    /// @param committed Sum of all leaves.
    function proposeRoot(uint64 seq_, bytes32 root_, bytes32 manifest_, uint256 committed)
        external
        onlyRole(PROPOSER_ROLE)
    {
        require(pending.validAt == 0, PendingExists(pending.seq));
        require(seq_ == seq + 1, SeqNotNext(seq + 1, seq_));
        require(root_ != bytes32(0), EmptyRoot());
        require(committed >= committedTotal, CommittedShrank(committedTotal, committed));
        uint256 needed = committed - claimedTotal;
        uint256 balance = asset.balanceOf(address(this));
        require(balance >= needed, Underfunded(needed, balance));
        uint64 validAt = uint64(block.timestamp) + timelock;
        pending = Pending(root_, manifest_, committed, seq_, validAt);
        emit RootProposed(seq_, root_, manifest_, committed, validAt, msg.sender);
    }

    /// @notice Throws the waiting root out. Works while paused: once the timelock has run, anyone may
    /// accept, so a guardian pauses first and vetoes then.
    /// @param reason For the log.
    function vetoRoot(bytes32 reason) external onlyRole(GUARDIAN_ROLE) {
        Pending memory waiting = pending;
        require(waiting.validAt != 0, NoPending());
        delete pending;
        emit RootVetoed(waiting.seq, waiting.root, msg.sender, reason);
    }

    /// @notice Accepts a root that has waited long enough. Anyone may.
    function acceptRoot() external whenNotPaused {
        Pending memory waiting = pending;
        require(waiting.validAt != 0, NoPending());
        require(block.timestamp >= waiting.validAt, TimelockRunning(waiting.validAt, block.timestamp));
        delete pending;
        (root, manifest, seq) = (waiting.root, waiting.manifest, waiting.seq);
        committedTotal = waiting.committed;
        emit RootAccepted(waiting.seq, waiting.root, waiting.manifest, waiting.committed);
    }

    /// @notice Pays `account` what it has not claimed yet. Anyone may send it.
    /// @param account Receives the payment, whoever sends the transaction.
    /// @param cumulative The lifetime total in the account's leaf.
    /// @param proof Sibling hashes from leaf to root.
    /// @return amount What was paid.
    function claim(address account, uint256 cumulative, bytes32[] calldata proof)
        external
        whenNotPaused
        returns (uint256 amount)
    {
        require(cumulative > claimed[account], NothingToClaim(claimed[account], cumulative));
        return _claim(account, cumulative, proof);
    }

    /// @notice Claims for many accounts; those already up to date are skipped.
    /// @param accounts Receive the payments.
    /// @param cumulatives Their lifetime totals.
    /// @param proofs Their proofs.
    function claimMany(address[] calldata accounts, uint256[] calldata cumulatives, bytes32[][] calldata proofs)
        external
        whenNotPaused
    {
        uint256 count = accounts.length;
        require(
            cumulatives.length == count && proofs.length == count,
            LengthMismatch(count, cumulatives.length, proofs.length)
        );
        for (uint256 i; i < count; ++i) {
            if (cumulatives[i] > claimed[accounts[i]]) _claim(accounts[i], cumulatives[i], proofs[i]);
        }
    }

    /// @notice The leaf of OpenZeppelin's StandardMerkleTree over
    /// (uint256 chain id, address distributor, address account, uint256 cumulative).
    /// @dev Hashed twice, so that no inner node can pass for a leaf.
    function leafOf(address account, uint256 cumulative) public view returns (bytes32) {
        return keccak256(bytes.concat(keccak256(abi.encode(block.chainid, address(this), account, cumulative))));
    }

    function _claim(address account, uint256 cumulative, bytes32[] calldata proof) private returns (uint256 amount) {
        require(
            MerkleProof.verifyCalldata(proof, root, leafOf(account, cumulative)), BadProof(root, account, cumulative)
        );
        amount = cumulative - claimed[account];
        uint256 total = claimedTotal + amount;
        require(total <= committedTotal, OverCommitted(committedTotal, total));
        (claimed[account], claimedTotal) = (cumulative, total);
        emit Claimed(account, seq, amount, cumulative);
        asset.safeTransfer(account, amount);
    }
}
